//! Where a piece of source stands: a file and a range of bytes in it.

/// A file that the preprocessor has read, by the order of reading.
///
/// The number is an index into the source map of one compilation; `FileId(0)` is the file
/// that the user named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileId(pub u32);

/// A range of bytes `start..end` of one file, as the user wrote it (before preprocessing).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// The file that holds the text.
    pub file: FileId,
    /// Offset of the first byte, from 0.
    pub start: u32,
    /// Offset just past the last byte; never below `start`.
    pub end: u32,
}

impl Span {
    /// The range `start..end` of `file`; an end before the start is moved up to the start.
    pub fn new(file: FileId, start: u32, end: u32) -> Self {
        Span { file, start, end: end.max(start) }
    }

    /// The smallest span that holds both, or `self` when `other` stands in another file
    /// (as when a construct begins in a file and ends in one that it includes).
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}
