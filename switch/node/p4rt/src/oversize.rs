//! Messages beyond the limit are refused with the code of gRPC's other servers, and with the option that sets the limit.

use std::convert::Infallible;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::{http, BoxFuture, Service};
use tonic::{Code, Status};

/// What tonic says of a message that is too long begins so, with OUT_OF_RANGE.
const TONIC: &str = "Error, decoded message length too large: ";

/// The status of a message that was too long, where `status` says that it was.
pub(crate) fn status(status: &Status) -> Option<Status> {
    let sizes = status.message().strip_prefix(TONIC).filter(|_| status.code() == Code::OutOfRange)?;
    Some(Status::resource_exhausted(format!(
        "the message is too long: {sizes}; send less at a time, or start the switch with a higher --grpc-server-max-message"
    )))
}

/// A service whose refusals of long requests are turned into RESOURCE_EXHAUSTED.
#[derive(Clone)]
pub(crate) struct Oversize<S>(pub S);

impl<S> Service<http::Request<Body>> for Oversize<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            let refused = Status::from_header_map(answer.headers()).and_then(|refusal| status(&refusal));
            Ok(refused.map_or(answer, Status::into_http))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_messages() {
        let long = Status::out_of_range(format!("{TONIC}found 9 bytes, the limit is: 8 bytes"));
        let refused = status(&long).expect("too long");
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.message().contains("found 9 bytes, the limit is: 8 bytes"), "{refused}");
        assert!(status(&Status::out_of_range("index 9")).is_none());
        assert!(status(&Status::invalid_argument(long.message())).is_none());
    }
}
