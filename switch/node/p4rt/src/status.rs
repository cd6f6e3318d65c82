//! Canonical error codes and their form on the wire [P4Runtime sec 10].

use std::fmt;

use fairlane_pipeline::ControlError;
use prost::Message;
use prost_types::Any;

use crate::proto::google::rpc;
use crate::proto::p4::v1 as p4;

/// The canonical codes of `google.rpc.Code` that this service uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum Code {
    Ok = 0,
    Unknown = 2,
    InvalidArgument = 3,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
}

impl Code {
    /// The code's name in `google.rpc.Code`.
    pub fn name(self) -> &'static str {
        match self {
            Code::Ok => "OK",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::FailedPrecondition => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a request, or one element of a batch, was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Canonical code.
    pub code: Code,
    /// One sentence in English that names what is at fault.
    pub message: String,
    /// For a batch: the outcome of each element, in order. `None` stands for success.
    pub details: Vec<Option<(Code, String)>>,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Status {}

/// Result of whatever serves a request.
pub type Result<T> = std::result::Result<T, Status>;

macro_rules! constructors {
    ($($name:ident $code:ident)*) => {$(
        #[doc = concat!("A status of code `", stringify!($code), "`.")]
        pub fn $name(message: impl Into<String>) -> Status {
            Status::new(Code::$code, message)
        }
    )*};
}

/// Bytes that the details of a batch may take. Clients refuse trailers beyond 8 KiB unless told otherwise (specification, "gRPC
/// Metadata Maximum Size"); base64 makes 4 bytes of 3, and the other trailers need room too.
const DETAILS_BUDGET: usize = 5600;
/// Of the message, which stands in the details and in a trailer of its own.
const LONGEST_BESIDE_DETAILS: usize = 400;
const LONGEST_ALONE: usize = 4000;
/// An element's detail without its message: type URL, lengths and code.
const DETAIL_BYTES: usize = 42;

impl Status {
    /// A status without details.
    pub fn new(code: Code, message: impl Into<String>) -> Status {
        Status { code, message: message.into(), details: Vec::new() }
    }

    constructors! {
        invalid InvalidArgument
        not_found NotFound
        exists AlreadyExists
        denied PermissionDenied
        exhausted ResourceExhausted
        precondition FailedPrecondition
        aborted Aborted
        out_of_range OutOfRange
        unimplemented Unimplemented
        internal Internal
        unavailable Unavailable
    }

    /// Puts words in front of the message: where the error is.
    pub fn at(mut self, place: impl fmt::Display) -> Status {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// The status of a batch: `Ok` when all elements succeeded, otherwise UNKNOWN with one detail for each element.
    ///
    /// # Errors
    /// When any element failed.
    pub fn of_batch(element: &str, outcomes: Vec<Result<()>>) -> Result<()> {
        let total = outcomes.len();
        let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        let Some((index, first)) = outcomes.iter().enumerate().find_map(|(index, outcome)| Some((index, outcome.as_ref().err()?))) else {
            return Ok(());
        };
        let message = if total == 1 {
            first.message.clone()
        } else {
            format!("{failed} of {total} {element}s failed; {element} {} ({}): {}", index + 1, first.code, first.message)
        };
        let details = outcomes.into_iter().map(|outcome| outcome.err().map(|status| (status.code, status.message))).collect();
        Err(Status { code: Code::Unknown, message, details })
    }

    /// The message, and the serialised `google.rpc.Status` for the trailer `grpc-status-details-bin`; empty when there are no details.
    ///
    /// When the batch is large, the messages of its last errors are left out so that clients accept the trailer; the codes stay. When even the
    /// codes are too many, there are no details, and the message says so: a list of some of them would let the others pass for successes.
    pub fn trailers(&self) -> (String, Vec<u8>) {
        if self.details.is_empty() {
            return (clip(&self.message, LONGEST_ALONE), Vec::new());
        }
        let message = clip(&self.message, LONGEST_BESIDE_DETAILS);
        let most = (DETAILS_BUDGET - LONGEST_BESIDE_DETAILS) / DETAIL_BYTES;
        if self.details.len() > most {
            let why = format!(
                "no outcome of each is given, since those of {} are longer than clients take: write at most {most} at once",
                self.details.len()
            );
            return (format!("{message} ({why})"), Vec::new());
        }
        let status = Status { message: message.clone(), ..self.clone() };
        (message, status.to_rpc(DETAILS_BUDGET).encode_to_vec())
    }

    /// The status as a message, with all details, for callers that have no limit on trailers.
    pub fn to_message(&self) -> rpc::Status {
        self.to_rpc(usize::MAX)
    }

    fn to_rpc(&self, budget: usize) -> rpc::Status {
        // Codes alone, with the wrapping of each, are what cannot be left out.
        let mut left = budget.saturating_sub(self.details.len() * DETAIL_BYTES + self.message.len());
        let details = self.details.iter().map(|detail| {
            let error = match detail {
                None => p4::Error::default(),
                Some((code, message)) => {
                    let message = if message.len() + 4 <= left {
                        left -= message.len() + 4;
                        message.clone()
                    } else {
                        String::new()
                    };
                    p4::Error { canonical_code: *code as i32, message, ..p4::Error::default() }
                }
            };
            Any { type_url: "type.googleapis.com/p4.v1.Error".to_string(), value: error.encode_to_vec() }
        });
        rpc::Status { code: self.code as i32, message: self.message.clone(), details: details.collect() }
    }
}

/// At most so many bytes as the trailer `grpc-message` counts them, three for each byte beyond ASCII; cut between characters.
fn clip(text: &str, most: usize) -> String {
    let mut size = 0;
    let cut = text.char_indices().find(|(_, letter)| {
        size += if letter.is_ascii() { 1 } else { 3 * letter.len_utf8() };
        size > most
    });
    cut.map_or_else(|| text.to_string(), |(end, _)| format!("{}...", &text[..end]))
}

impl From<ControlError> for Status {
    fn from(error: ControlError) -> Status {
        let code = match &error {
            ControlError::NotFound(_) => Code::NotFound,
            ControlError::AlreadyExists(_) => Code::AlreadyExists,
            ControlError::InvalidArgument(_) => Code::InvalidArgument,
            ControlError::ResourceExhausted(_) => Code::ResourceExhausted,
            ControlError::PermissionDenied(_) => Code::PermissionDenied,
            ControlError::FailedPrecondition(_) => Code::FailedPrecondition,
            ControlError::Unimplemented(_) => Code::Unimplemented,
        };
        Status::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_one_detail_for_each_element() {
        assert_eq!(Status::of_batch("update", vec![Ok(()), Ok(())]), Ok(()));
        let status = Status::of_batch("update", vec![Ok(()), Err(Status::not_found("no such entry")), Ok(())]).unwrap_err();
        assert_eq!(status.code, Code::Unknown);
        assert_eq!(status.message, "1 of 3 updates failed; update 2 (NOT_FOUND): no such entry");
        let wire = rpc::Status::decode(status.trailers().1.as_slice()).unwrap();
        assert_eq!(wire.code, 2);
        let errors: Vec<p4::Error> = wire.details.iter().map(|any| p4::Error::decode(any.value.as_slice()).unwrap()).collect();
        assert_eq!(errors.iter().map(|error| error.canonical_code).collect::<Vec<_>>(), [0, 5, 0]);
        assert_eq!(errors[1].message, "no such entry");
        assert!(wire.details.iter().all(|any| any.type_url.ends_with("/p4.v1.Error")));
    }

    #[test]
    fn details_of_a_large_batch_keep_every_code_within_the_budget() {
        let outcomes = (0..120).map(|_| Err(Status::invalid("x".repeat(300)))).collect();
        let status = Status::of_batch("update", outcomes).unwrap_err();
        let (_, bytes) = status.trailers();
        assert!(bytes.len() <= DETAILS_BUDGET, "{}", bytes.len());
        let wire = rpc::Status::decode(bytes.as_slice()).unwrap();
        assert_eq!(wire.details.len(), 120);
        let last = p4::Error::decode(wire.details[119].value.as_slice()).unwrap();
        assert_eq!((last.canonical_code, last.message.as_str()), (3, ""));
        assert_eq!(status.to_message().details.len(), 120);
    }

    #[test]
    fn no_answer_is_longer_than_clients_take() {
        for count in [0, 1, 2, 50, 120, 123, 124, 130, 400, 100_000] {
            for length in [1, 60, 300, 1_000, 20_000] {
                let failures = (0..count.max(1)).map(|_| Err(Status::not_found("ü".repeat(length)))).collect();
                let status =
                    if count == 0 { Status::internal("x".repeat(length)) } else { Status::of_batch("update", failures).unwrap_err() };
                let (message, bytes) = status.trailers();
                // Each trailer counts with its name and 32 bytes [RFC 7540 sec 6.5.2]; bytes beyond ASCII are three in grpc-message.
                let said: usize = message.bytes().map(|byte| if byte.is_ascii() { 1 } else { 3 }).sum();
                let size = said + bytes.len().div_ceil(3) * 4 + 3 * 32 + "grpc-message grpc-status 13 grpc-status-details-bin".len();
                assert!(size <= 8192, "{count} failures of {length} characters: {size} bytes");
                assert_eq!(bytes.is_empty(), count == 0 || count > 123, "{count}");
                assert_eq!(message.contains("write at most 123"), count > 123);
            }
        }
    }
}
