//! An exporter with fixed values, which can be stopped and resumed.

use std::{
    fmt::Write,
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    time::Instant,
};

use axum::{Router, routing::get};
use balance::promql::PARETO_GAUGE;
use tokio::sync::oneshot;

/// Names and signals of the nodes, in the order of `balance::Signal::ALL`.
type Nodes = Vec<(String, [f64; 4])>;

pub(super) struct FakeExporter {
    nodes: Arc<Nodes>,
    begin: Instant,
    address: SocketAddr,
    /// Ends the server with all its connections when dropped.
    server: Mutex<Option<(oneshot::Sender<()>, std::thread::JoinHandle<()>)>>,
}

impl FakeExporter {
    pub(super) fn start(nodes: impl IntoIterator<Item = (String, [f64; 4])>) -> FakeExporter {
        let any = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = any.local_addr().unwrap();
        let nodes = Arc::new(nodes.into_iter().collect());
        let exporter = FakeExporter { nodes, begin: Instant::now(), address, server: Mutex::default() };
        exporter.serve(any);
        exporter
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port and all connections.
    pub(super) fn stop(&self) {
        if let Some((stop, thread)) = self.server.lock().unwrap().take() {
            drop(stop);
            thread.join().unwrap();
        }
    }

    pub(super) fn resume(&self) {
        self.serve(TcpListener::bind(self.address).unwrap());
    }

    fn serve(&self, listener: TcpListener) {
        let (nodes, begin) = (Arc::clone(&self.nodes), self.begin);
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                listener.set_nonblocking(true).unwrap();
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let page = move || async move { page(&nodes, begin.elapsed().as_secs_f64()) };
                let router = Router::new().route("/metrics", get(page));
                tokio::select! {
                    _ = axum::serve(listener, router) => {}
                    _ = stopped => {}
                }
            });
        });
        *self.server.lock().unwrap() = Some((stop, thread));
    }
}

impl Drop for FakeExporter {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Both families of metrics.
fn page(nodes: &Nodes, seconds: f64) -> String {
    const SIZE: f64 = 1e9;
    let mut text = String::new();
    let mut line = |name: &str, node: &str, more: &str, value: f64| {
        let _ = writeln!(text, "{name}{{instance=\"{node}\"{more}}} {value}");
    };
    for (node, [cpu, cpu_pressure, memory, memory_pressure]) in nodes {
        line("node_cpu_usage_ratio", node, "", *cpu);
        line("node_cpu_pressure_psi", node, "", *cpu_pressure);
        line("node_memory_usage_ratio", node, "", *memory);
        line("node_memory_pressure_psi", node, "", *memory_pressure);
        line(PARETO_GAUGE, node, "", 0.5);
        line("node_cpu_seconds_total", node, ",mode=\"idle\",cpu=\"0\"", (1.0 - cpu) * seconds);
        line("node_pressure_cpu_waiting_seconds_total", node, "", cpu_pressure * seconds);
        line("node_pressure_memory_waiting_seconds_total", node, "", memory_pressure * seconds);
        line("node_memory_MemAvailable_bytes", node, "", (1.0 - memory) * SIZE);
        line("kube_node_status_allocatable", node, &format!(",node=\"{node}\",resource=\"memory\""), SIZE);
    }
    text
}
