//! A TCP connection whose server side can be torn down at any time.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Ends a connection without another byte.
#[derive(Debug, Clone)]
pub(super) struct Cut(pub(super) CancellationToken);

/// The connection.
pub(super) struct CutIo {
    stream: TcpStream,
    cut: CancellationToken,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl CutIo {
    /// Dies with `all`, or alone.
    pub(super) fn new(stream: TcpStream, all: &CancellationToken) -> Self {
        let cut = all.child_token();
        Self { stream, cancelled: Box::pin(cut.clone().cancelled_owned()), cut }
    }

    pub(super) fn cut(&self) -> Cut {
        Cut(self.cut.clone())
    }
}

fn dead<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
}

impl AsyncRead for CutIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.cancelled.as_mut().poll(cx).is_ready() {
            return dead();
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for CutIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.cut.is_cancelled() {
            return dead();
        }
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
