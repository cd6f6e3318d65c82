//! Connections of clients: accepted while there is a place, given to HTTP/2 once they speak, and closed when they lose their place.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::{Duration, Instant};

use fairlane_clients::{Clients, Place};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tonic::transport::server::Connected;

use crate::doors::Link;

/// How long a client may take to begin HTTP/2.
const FIRST_WORDS: Duration = Duration::from_secs(10);
/// HTTP/2's preface and the head of the frame after it [RFC 9113 sec 3.4].
const PREFACE: usize = 24 + 9;
/// Between two tries to accept, when the process may open no more files.
const AGAIN: Duration = Duration::from_millis(50);
/// Connections that have spoken and that the HTTP/2 server has not taken yet.
pub(crate) const WAITING: usize = 16;

/// A client's connection. Its errors are the end for HTTP/2, which then frees what it holds.
pub(crate) struct Connection {
    stream: TcpStream,
    place: Arc<Place>,
    /// Bytes of the preface that are still to come.
    preface: usize,
}

/// Accepts connections until nobody takes them.
pub(crate) async fn accept(listener: TcpListener, clients: Clients, sender: mpsc::Sender<io::Result<Connection>>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = sender.closed() => return,
        };
        match accepted {
            Ok((stream, peer)) => match clients.connections.enter(Instant::now(), Some(FIRST_WORDS)) {
                Ok(place) => {
                    // Without it, answers only come later.
                    let _ = stream.set_nodelay(true);
                    tokio::spawn(begin(Connection { stream, place: Arc::new(place), preface: PREFACE }, sender.clone()));
                }
                Err(_) => busy(peer),
            },
            Err(error) => {
                // Out of descriptors, most likely: trying again at once would take the processor, too.
                tracing::warn!(%error, "a P4Runtime client is not served");
                clients.connections.relieve(Instant::now());
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

fn busy(peer: SocketAddr) {
    tracing::warn!(%peer, "a P4Runtime client is not served: all connections have a request under way");
}

/// Buffers are for clients that have something to say.
async fn begin(mut connection: Connection, sender: mpsc::Sender<io::Result<Connection>>) {
    if std::future::poll_fn(|context| connection.poll_speaks(context)).await {
        // The server may have stopped.
        let _ = sender.send(Ok(connection)).await;
    }
}

impl Connection {
    fn poll_speaks(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        if self.poll_lost(context).is_err() {
            return Poll::Ready(false);
        }
        let mut byte = [0];
        Poll::Ready(matches!(ready!(self.stream.poll_peek(context, &mut ReadBuf::new(&mut byte))), Ok(1..)))
    }

    fn poll_lost(&self, context: &mut Context<'_>) -> io::Result<()> {
        match self.place.gone().poll(context) {
            None => Ok(()),
            Some(_) => Err(lost()),
        }
    }

    fn check_lost(&self) -> io::Result<()> {
        self.place.gone().reason().map_or(Ok(()), |_| Err(lost()))
    }
}

fn lost() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the connection has lost its place")
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_lost(context)?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if self.preface > 0 {
            self.preface = self.preface.saturating_sub(buffer.filled().len() - before);
            if self.preface == 0 {
                self.place.settle();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check_lost()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_lost()?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, slices: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.check_lost()?;
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Connected for Connection {
    type ConnectInfo = Link;

    fn connect_info(&self) -> Link {
        Link::new(Arc::clone(&self.place))
    }
}
