//! A port behind which is what a test wants.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{self, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// What is behind the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// Connections are taken and closed at once, open ones too.
    Shut,
    /// A server that speaks HTTP/1.1 and says no to everything.
    HttpNo,
    /// One that says yes, even to the HTTP form of the administration calls.
    HttpYes,
    /// A way through to the server behind it.
    Open,
}

/// Ends with the value.
#[derive(Debug)]
pub(super) struct Street {
    address: String,
    door: watch::Sender<Door>,
    visits: Arc<AtomicUsize>,
    _accepting: JoinSet<()>,
}

impl Street {
    /// Before `server` (`host:port`).
    pub(super) async fn new(server: impl Into<String>, door: Door) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let door = watch::Sender::new(door);
        let visits = Arc::new(AtomicUsize::new(0));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server.into(), door.subscribe(), Arc::clone(&visits)));
        Self { address, door, visits, _accepting: accepting }
    }

    pub(super) fn address(&self) -> String {
        self.address.clone()
    }

    pub(super) fn becomes(&self, door: Door) {
        self.door.send_replace(door);
    }

    /// How many connections came.
    pub(super) fn visits(&self) -> usize {
        self.visits.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, server: String, mut door: watch::Receiver<Door>, visits: Arc<AtomicUsize>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                visits.fetch_add(1, Ordering::Relaxed);
                let (mut visitor, _) = accepted.unwrap();
                let behind = *door.borrow();
                match behind {
                    Door::Shut => drop(visitor),
                    Door::HttpNo => {
                        connections.spawn(answer(visitor, "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"));
                    }
                    Door::HttpYes => {
                        let yes =
                            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
                        connections.spawn(answer(visitor, yes));
                    }
                    Door::Open => {
                        let server = server.clone();
                        connections.spawn(async move {
                            let mut inside = TcpStream::connect(server).await.unwrap();
                            let _ = io::copy_bidirectional(&mut visitor, &mut inside).await;
                        });
                    }
                }
            }
            _ = door.changed() => connections.abort_all(),
        }
    }
}

async fn answer(mut visitor: TcpStream, answer: &str) {
    let mut request = [0; 1_024];
    let _ = visitor.read(&mut request).await;
    let _ = visitor.write_all(answer.as_bytes()).await;
}
