//! What stands before the services: a client's certificate is for clients, messages are counted as they come ([`Whole`]), and a connection
//! with a request under way keeps its place.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

use fairlane_clients::{Place, Pool};
use http_body::{Frame, SizeHint};
use prost::bytes::Bytes;
use tonic::body::Body;
use tonic::codegen::{http, BoxFuture, Service};
use tonic::transport::server::TlsConnectInfo;
use tonic::Status;

use crate::tls::Purpose;
use crate::whole::Whole;

/// What a request knows of its connection.
#[derive(Clone)]
pub(crate) struct Link {
    place: Arc<Place>,
    /// Its client's certificate is for clients, once that was looked at.
    for_clients: Arc<OnceLock<bool>>,
}

impl Link {
    pub(crate) fn new(place: Arc<Place>) -> Link {
        Link { place, for_clients: Arc::default() }
    }
}

/// A service behind the doors.
#[derive(Clone)]
pub(crate) struct Doors<S> {
    pub inner: S,
    pub messages: Pool,
    pub longest: usize,
    /// What a client's certificate must be for; `None` where it needs none.
    pub purpose: Option<Arc<Purpose>>,
}

/// A request under way on a connection.
struct Working(Arc<Place>, bool);

/// The connection of a request, and whether its client may ask for anything.
fn link(request: &http::Request<Body>, purpose: Option<&Purpose>) -> (Option<Link>, bool) {
    let extensions = request.extensions();
    let over_tls = extensions.get::<TlsConnectInfo<Link>>();
    let link = extensions.get::<Link>().or_else(|| over_tls.map(TlsConnectInfo::get_ref));
    let Some(purpose) = purpose else { return (link.cloned(), true) };
    let look = || over_tls.and_then(TlsConnectInfo::peer_certs).is_some_and(|shown| purpose.holds(&shown));
    (link.cloned(), link.is_some_and(|link| *link.for_clients.get_or_init(look)))
}

impl Working {
    fn begin(place: Arc<Place>) -> Working {
        place.work();
        Working(place, true)
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
        let (link, allowed) = link(&request, self.purpose.as_deref());
        if !allowed {
            let refusal =
                "the client's certificate is not for clients: its extendedKeyUsage does not name clientAuth [RFC 5280 sec 4.2.1.12]; \
                           sign one that does, with openssl's -addext extendedKeyUsage=clientAuth";
            return Box::pin(std::future::ready(Ok(Status::unauthenticated(refusal).into_http())));
        }
        let mut working = link.map(|link| Working::begin(link.place));
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
