//! Formats P4_16 source text (`fairlane fmt`). See docs/fmt.md.
//!
//! It works on tokens before the preprocessor, so macros and all branches of `#if` are formatted alike and stay where they are:
//!
//! ```text
//! text --pieces--> tokens, comments, directives --roles--> braces, types, operators --layout--> lines --align--> columns
//! ```
//!
//! Only white space changes. [`format`] itself compares the tokens of both texts, and formats its own result again, before it gives it away.

#![forbid(unsafe_code)]

mod align;
mod layout;
mod pieces;
mod roles;
mod same;

/// The columns of a line, unless told otherwise.
pub const WIDTH: usize = 120;

/// Why a text is left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What stands in the way, in one sentence without a full stop.
    pub reason: String,
}

impl Refusal {
    fn at(text: &str, byte: usize, reason: &str) -> Refusal {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.rfind('\n').map_or(0, |i| i + 1);
        Refusal { line: before.matches('\n').count() + 1, column: before[line..].chars().count() + 1, reason: reason.to_string() }
    }
}

/// A text that is still another after so many rounds is left as it is.
const ROUNDS: usize = 5;

/// Formats a text: lines of `width` columns where they can be broken, the ends of lines as its first one has them.
///
/// # Errors
/// The text is better left as it is: a comment or string does not end, or the result would be another program.
pub fn format(text: &str, width: usize) -> Result<String, Refusal> {
    let (mark, body) = text.strip_prefix('\u{feff}').map_or(("", text), |rest| ("\u{feff}", rest));
    let windows = body.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r'));
    let original = body.replace("\r\n", "\n");
    let mut now = once(&original, width)?;
    let mut settled = false;
    for _ in 0..ROUNDS {
        let again = once(&now, width)?;
        settled = again == now;
        now = again;
        if settled {
            break;
        }
    }
    if !settled {
        return Err(Refusal::at(&original, 0, "the layout does not settle"));
    }
    same::check(&original, &now)?;
    let now = if windows { now.replace('\n', "\r\n") } else { now };
    Ok(format!("{mark}{now}"))
}

fn once(text: &str, width: usize) -> Result<String, Refusal> {
    let pieces = pieces::pieces(text)?;
    let roles = roles::roles(&pieces);
    let mut lines = layout::lines(&pieces, &roles, width);
    align::align(&mut lines);
    let mut out = String::with_capacity(text.len());
    for line in &lines {
        if line.blank_before {
            out.push('\n');
        }
        if !line.verbatim {
            out.extend(std::iter::repeat_n(' ', line.indent));
        }
        out.push_str(&line.text);
        out.push('\n');
    }
    Ok(out)
}
