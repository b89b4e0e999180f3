//! The thread of the admin port, with its own runtime. If reviews block their runtime, probes of the kubelet still get an answer, and
//! metrics still show the problem.

use std::io;
use std::thread;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::listener::Listener;

/// Serves the admin port until it is dropped.
pub(super) struct AdminThread {
    /// Never used to send: the thread waits for the drop.
    _serving: oneshot::Sender<()>,
}

impl AdminThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread or files for the port.
    pub(super) fn start(listener: Listener, socket: std::net::TcpListener) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let socket = {
            let _entered = runtime.enter();
            TcpListener::from_std(socket)?
        };
        let (serving, dropped) = oneshot::channel::<()>();
        let serve = async {
            tokio::select! {
                biased;
                _ = dropped => {}
                _ = listener.serve(socket) => {}
            }
        };
        thread::Builder::new().name("admin".to_owned()).spawn(move || runtime.block_on(serve))?;
        Ok(Self { _serving: serving })
    }
}
