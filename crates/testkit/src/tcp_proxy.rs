//! A TCP proxy on loopback in front of an API server. It delays what it forwards, or goes silent: it keeps its connections, and
//! acknowledges what arrives, and forwards nothing any more. No keepalive probe notices that.

use std::{net::SocketAddr, time::Duration};

use kube::Config;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep_until},
};

pub struct TcpProxy {
    address: SocketAddr,
    /// How often it went silent.
    silences: watch::Sender<usize>,
    task: JoinHandle<()>,
}

/// Its connections end with the value.
impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TcpProxy {
    /// In front of the API server of a client configuration, with a delay per direction. The handshake of TCP is not delayed.
    pub async fn start(config: &Config, delay: Duration) -> TcpProxy {
        let (host, port) = (config.cluster_url.host().unwrap().to_owned(), config.cluster_url.port_u16().unwrap());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let silences = watch::channel(0).0;
        let known = silences.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect((host.as_str(), port)).await else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let silences = known.subscribe();
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                connections.spawn(forward(from_client, to_server, delay, silences.clone()));
                connections.spawn(forward(from_server, to_client, delay, silences));
                while connections.try_join_next().is_some() {}
            }
        });
        TcpProxy { address, silences, task }
    }

    /// The configuration of a client that goes through the proxy.
    pub fn config(&self, config: &Config) -> Config {
        let mut config = config.clone();
        config.cluster_url = format!("https://{}/", self.address).parse().unwrap();
        config
    }

    /// Forwards nothing any more on the connections that there are. New ones work.
    pub fn silence(&self) {
        self.silences.send_modify(|silences| *silences += 1);
    }
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration, silences: watch::Receiver<usize>) {
    let before = *silences.borrow();
    let (sender, mut waiting) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let read = async move {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let _ = sender.send((Instant::now() + delay, buffer[..length].to_vec()));
        }
        let _ = sender.send((Instant::now() + delay, Vec::new()));
    };
    let write = async move {
        while let Some((due, bytes)) = waiting.recv().await {
            sleep_until(due).await;
            if *silences.borrow() != before {
                std::future::pending::<()>().await;
            }
            // No bytes: the connection is closed.
            if bytes.is_empty() || to.write_all(&bytes).await.is_err() {
                let _ = to.shutdown().await;
                return;
            }
        }
    };
    futures::future::join(read, write).await;
}
