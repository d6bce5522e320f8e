//! A TCP proxy that behaves as badly as a network can.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time,
};

/// What the proxy does with bytes and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    /// Passes everything on.
    Good,
    /// Passes everything on, this much later.
    Slow(Duration),
    /// Connections are accepted and stay open, but no byte arrives on either side: no FIN, no RST.
    Blackhole,
    /// Requests arrive, answers do not.
    AnswersLost,
    /// New connections are closed at once, open ones are cut.
    Refused,
}

/// The proxy; it ends with this value.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    network: watch::Sender<Network>,
    connections: Arc<Mutex<JoinSet<()>>>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    /// Listens on a port of its own and connects through to `target` (`host:port`).
    pub(crate) async fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let (network, seen) = watch::channel(Network::Good);
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, target.to_owned(), seen, Arc::clone(&connections)));
        Self { address, network, connections, _accepting: accepting }
    }

    /// Where clients connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The network becomes like this, for open connections too.
    pub(crate) fn become_(&self, network: Network) {
        let _before = self.network.send_replace(network);
        if network == Network::Refused {
            self.cut();
        }
    }

    /// Cuts every open connection; new ones are as good as before.
    pub(crate) fn cut(&self) {
        self.connections.lock().expect("not poisoned").abort_all();
    }
}

async fn accept(
    listener: TcpListener,
    target: String,
    network: watch::Receiver<Network>,
    connections: Arc<Mutex<JoinSet<()>>>,
) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        if *network.borrow() == Network::Refused {
            continue;
        }
        connections.lock().expect("not poisoned").spawn(carry(client, target.clone(), network.clone()));
    }
}

async fn carry(client: TcpStream, target: String, network: watch::Receiver<Network>) {
    let Ok(server) = TcpStream::connect(&target).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let there = pass(&mut from_client, &mut to_server, network.clone(), &[Network::Blackhole]);
    let back = pass(&mut from_server, &mut to_client, network, &[Network::Blackhole, Network::AnswersLost]);
    tokio::join!(there, back);
}

/// Carries bytes one way; holds them back while the network is one of `dead`.
async fn pass(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    mut network: watch::Receiver<Network>,
    dead: &[Network],
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let now = *network.borrow();
        if let Network::Slow(delay) = now {
            time::sleep(delay).await;
        }
        if network.wait_for(|network| !dead.contains(network)).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
    let _closed = to.shutdown().await;
}
