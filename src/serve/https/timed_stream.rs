//! A stream with time limits for the head of a request and for a client that does not read its answer.
//!
//! hyper has one timer for the head, which also runs while a connection is idle. It must be longer than the 90 s after
//! which Go drops idle connections, and that is far too long for a head that arrives byte by byte. So hyper's timer is the
//! idle timer, and the head has a timer here, which starts with the first byte after an answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::metrics::{Cut, HttpsMetrics};
use super::slots::{Activity, ConnectionPhase};

pub(super) struct TimedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    metrics: Arc<HttpsMetrics>,
    head: Timer,
    write: Timer,
}

/// A limit on one wait. The timer of the runtime is created at the first wait and kept for the next.
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
        head: Duration,
        write: Duration,
    ) -> Self {
        Self { stream, activity, metrics, head: Timer::new(head), write: Timer::new(write) }
    }

    /// Returns the result of a write, or an error when it has been pending for too long.
    fn poll_written<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write.since = None;
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

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
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
