//! A stream with two time limits, one for the head of a request and one for reading the answer. It also sends a message to a client
//! whose idle connection is about to end.
//!
//! hyper has one timer for the head, which also runs while a connection is idle. That timer must be longer than the 90 s after which Go
//! drops idle connections, and this is far too long for a head that arrives byte by byte. So hyper's timer is the idle timer. The head
//! has its own timer here, which starts with the first byte after an answer.
//!
//! HTTP/1.1 has no message that ends an idle connection. If the server closes the connection, a request may be on its way, and the API
//! server does not send a POST twice. So the server sends an interim response:
//!
//! - A client without an open request closes the connection, because it expects no response (RFC 9112, 9.2).
//! - A client that has just sent a request discards the interim response and reads the final one (RFC 9110, 15.2.1), which says
//!   `Connection: close`.
//!
//! Go's client does both (`readLoop` and `readResponse` of net/http's transport.go). A client that does neither loses the connection
//! after [`Limits::farewell`].

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until};

use super::limits::Limits;
use super::metrics::{Cut, HttpsMetrics};
use super::shutdown::ShutdownPhase;
use super::slots::{Activity, ConnectionPhase};

/// Every client discards this response before an answer.
const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

pub(super) struct TimedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    metrics: Arc<HttpsMetrics>,
    shutdown: watch::Receiver<ShutdownPhase>,
    interim: Interim,
    head: Timer,
    write: Timer,
}

/// The interim response that makes a client close its idle connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Interim {
    Unsent,
    /// Written, but possibly still in the TLS buffer.
    Written,
    Sent,
}

/// A limit on one wait. The runtime's timer is created at the first wait and reused.
struct Timer {
    limit: Duration,
    since: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedStream<S> {
    pub(super) fn new(
        stream: S,
        activity: Arc<Activity>,
        metrics: Arc<HttpsMetrics>,
        shutdown: watch::Receiver<ShutdownPhase>,
        limits: &Limits,
    ) -> Self {
        let (head, write) = (Timer::new(limits.header), Timer::new(limits.write));
        let interim = if limits.farewell.is_zero() { Interim::Sent } else { Interim::Unsent };
        Self { stream, activity, metrics, shutdown, interim, head, write }
    }

    /// Returns the result of a write, or an error if the write has been pending for too long.
    fn poll_written<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.write.since.take().is_some() {
                // hyper reads before it writes, and only a read sends the interim response: it needs another poll.
                context.waker().wake_by_ref();
            }
            return written;
        }
        let since = *self.write.since.get_or_insert_with(Instant::now);
        ready!(self.write.poll(context, since));
        self.metrics.cut(Cut::Write);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Timer {
    fn new(limit: Duration) -> Self {
        Self { limit, since: None, sleep: None }
    }

    /// Ready once `limit` has passed since `since`.
    fn poll(&mut self, context: &mut Context<'_>, since: Instant) -> Poll<()> {
        let deadline = since + self.limit;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(context)
    }
}

impl<S: AsyncWrite + Unpin> TimedStream<S> {
    /// Sends the interim response, once, when the port is closed and the connection is idle. The response never lands inside an answer:
    /// hyper reads only after it has written, and `write.since` is set while the client does not read an answer.
    fn poll_interim(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let idle = self.write.since.is_none() && self.activity.now().0 == ConnectionPhase::Waiting;
        if self.interim == Interim::Unsent && idle && *self.shutdown.borrow() >= ShutdownPhase::Closing {
            match Pin::new(&mut self.stream).poll_write(context, INTERIM) {
                Poll::Ready(Ok(written)) if written == INTERIM.len() => self.interim = Interim::Written,
                // If there is no room for even one line, the client does not read.
                Poll::Ready(Ok(_)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => {}
            }
        }
        if self.interim == Interim::Written && Pin::new(&mut self.stream).poll_flush(context)?.is_ready() {
            self.interim = Interim::Sent;
        }
        Ok(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(context, buffer) {
            if buffer.filled().len() > before {
                this.activity.bytes_arrived();
            }
            return Poll::Ready(read);
        }
        this.poll_interim(context)?;
        let (ConnectionPhase::Head, since) = this.activity.now() else {
            return Poll::Pending;
        };
        ready!(this.head.poll(context, since));
        this.metrics.cut(Cut::Header);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.poll_written(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.poll_written(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.poll_written(context, closed)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.poll_written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
