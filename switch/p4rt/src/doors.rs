//! What stands before the services: messages are counted as they come ([`Whole`]), and a connection with a request under way keeps its place.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use fairlane_clients::{Place, Pool};
use http_body::{Frame, SizeHint};
use prost::bytes::Bytes;
use tonic::body::Body;
use tonic::codegen::{http, BoxFuture, Service};
use tonic::transport::server::TlsConnectInfo;
use tonic::Status;

use crate::whole::Whole;

/// A service behind the doors.
#[derive(Clone)]
pub(crate) struct Doors<S> {
    pub inner: S,
    pub messages: Pool,
    pub longest: usize,
}

/// A request under way on a connection.
struct Working(Arc<Place>, bool);

impl Working {
    fn begin(request: &http::Request<Body>) -> Option<Working> {
        let extensions = request.extensions();
        let over_tls = || extensions.get::<TlsConnectInfo<Arc<Place>>>().map(TlsConnectInfo::get_ref);
        let place = extensions.get::<Arc<Place>>().or_else(over_tls)?;
        place.work();
        Some(Working(Arc::clone(place), true))
    }

    /// It waits for the client from now on.
    fn rest(&mut self) {
        if std::mem::take(&mut self.1) {
            self.0.rest(Instant::now());
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.rest();
    }
}

/// An answer. A stream keeps its connection until it ends; any other one only while the client takes it.
struct Answer {
    inner: Body,
    stream: bool,
    working: Option<Working>,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(context);
        if let (Some(working), false, Poll::Ready(_)) = (&self.working, self.stream, &frame) {
            working.0.touch(Instant::now());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<S> Service<http::Request<Body>> for Doors<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let mut working = Working::begin(&request);
        let stream = request.uri().path().ends_with("/StreamChannel");
        let (messages, longest) = (self.messages.clone(), self.longest);
        let answer = self.inner.call(request.map(|body| Body::new(Whole::new(body, messages, longest, stream))));
        Box::pin(async move {
            let answer = answer.await?;
            if let (Some(working), false) = (&mut working, stream) {
                working.rest();
            }
            Ok(answer.map(|inner| Body::new(Answer { inner, stream, working })))
        })
    }
}
