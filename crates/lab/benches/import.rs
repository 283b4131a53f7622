//! What an import costs: 500 nodes with 10,000 VMs over seven days at five minutes, from a server that answers as Prometheus does.
//! `cargo bench -p lab --bench import -- NODES VMS DAYS` measures another size. The server is a process of its own.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::{
    fmt::Write as _,
    fs::File,
    io::{BufRead, BufReader, BufWriter, Write},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    time::Instant,
};

use flate2::{Compression, write::GzEncoder};
use lab::import::{
    Loads, Request, import,
    objects::{Collector, Kind},
    prometheus, text,
};
use serde_json::json;
use sim::{import::Order, units::Span};

const SERVE: &str = "serve";
const STEP: u64 = 300;

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let [nodes, vms, days] = match numbers[..] {
        [nodes, vms, days] => [nodes, vms, days],
        _ => [500, 10_000, 7],
    };
    if std::env::args().any(|argument| argument == SERVE) {
        return serve(nodes, vms);
    }
    let sizes = [nodes, vms, days].map(|number| number.to_string());
    let mut server = Command::new(std::env::current_exe().unwrap());
    let mut server = server.arg(SERVE).args(sizes).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    measure(&format!("http://127.0.0.1:{}", port.trim()), [nodes, vms, days]);
    server.kill().unwrap();
    server.wait().unwrap();
}

fn measure(url: &str, [nodes, vms, days]: [usize; 3]) {
    let mut collector = Collector::new(Kind::Instance);
    for node in 0..nodes {
        let size = json!({"cpu": "64", "memory": "512Gi", "pods": "250"});
        let object =
            json!({"metadata": {"name": format!("worker-{node}")}, "status": {"capacity": size, "allocatable": size}});
        collector.node(&object, false);
    }
    for vm in 0..vms {
        collector.instance(&json!({
            "metadata": {"namespace": "default", "name": format!("vm-{vm}")},
            "spec": {"domain": {"cpu": {"cores": 4}, "memory": {"guest": "8Gi"}}},
            "status": {"phase": "Running", "nodeName": format!("worker-{}", vm % nodes),
                       "conditions": [{"type": "LiveMigratable", "status": "True"}]},
        }));
    }
    let before = peak();
    let begun = Instant::now();
    let request = Request {
        name: "bench".into(),
        span: Span(days as u64 * 86_400),
        step: Span(STEP),
        scenario_step: Span(STEP),
        order: Order::Forecast,
        anonymize: None,
        time_scale: 1.0,
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.gz");
    let out = BufWriter::new(GzEncoder::new(BufWriter::new(File::create(&path).unwrap()), Compression::default()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let prometheus = prometheus(url, Default::default()).unwrap();
    let imported = import(collector.finish(), Loads::Prometheus(&prometheus), &request, out, |_, _| {});
    let (out, report) = runtime.block_on(imported).unwrap();
    out.into_inner().unwrap().finish().unwrap().flush().unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    println!("{}", text(&report, None));
    println!(
        "{nodes} nodes, {vms} VMs, {days} days: {} samples in {} queries",
        report.summary.samples, report.notes.queries
    );
    let size = std::fs::metadata(&path).unwrap().len() as f64 / 1e6;
    println!("import: {seconds:.1} s, {size:.1} MB on disk, at most {} MiB of memory ({before} MiB before)", peak());
    let begun = Instant::now();
    let text = sim::scenario::text_of(std::fs::read(&path).unwrap()).unwrap();
    let length = text.len() as f64 / 1e6;
    let scenarios = sim::scenario::parse(&text).unwrap();
    drop(text);
    let model = sim::ClusterModel::new(&scenarios[0]).unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "opened: {seconds:.1} s, {length:.1} MB of text, {} VMs, at most {} MiB of memory",
        model.vm_count(),
        peak()
    );
}

/// The most memory that this process had so far, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// Answers one connection after the other until it is killed.
fn serve(nodes: usize, vms: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        std::thread::spawn(move || answer_all(stream, nodes, vms));
    }
}

fn answer_all(mut stream: TcpStream, nodes: usize, vms: usize) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut first = String::new();
        if lines.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut head = String::new();
        while lines.read_line(&mut head).unwrap_or(0) > 2 {
            head.clear();
        }
        let target = first.split(' ').nth(1).unwrap_or_default();
        let body = answer(target, nodes, vms);
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}

fn answer(target: &str, nodes: usize, vms: usize) -> String {
    let (path, query) = target.split_once('?').unwrap();
    let arguments: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let argument = |name: &str| arguments.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let data = |kind: &str, result: &str| {
        format!("{{\"status\":\"success\",\"data\":{{\"resultType\":\"{kind}\",\"result\":{result}}}}}")
    };
    let query = argument("query");
    let vm = |number: usize| {
        format!("{{\"namespace\":\"default\",\"name\":\"vm-{number}\",\"node\":\"worker-{}\"}}", number % nodes)
    };
    if path.ends_with("/series") {
        let all: Vec<String> = (0..vms).map(vm).collect();
        return format!("{{\"status\":\"success\",\"data\":[{}]}}", all.join(","));
    }
    if !path.ends_with("/query_range") {
        return match query {
            "time()" => data("scalar", "[1700000000,\"1700000000\"]"),
            query if query.contains('[') && !query.starts_with("sum") => data(
                "matrix",
                "[{\"metric\":{},\"values\":[[1699999940,\"1\"],[1699999970,\"2\"],[1700000000,\"3\"]]}]",
            ),
            query if query.starts_with("count") => {
                let count = if query.contains("node_") { nodes } else { vms };
                data("vector", &format!("[{{\"metric\":{{}},\"value\":[1700000000,\"{count}\"]}}]"))
            }
            _ => data("vector", "[]"),
        };
    }
    let [start, end] = ["start", "end"].map(|name| argument(name).parse::<u64>().unwrap());
    let mut result = String::from("[");
    if query.contains("node_") {
        (0..nodes).for_each(|node| {
            series(&mut result, &format!("{{\"instance\":\"worker-{node}:9100\"}}"), node, query, start, end)
        });
    } else {
        let names = query.split("name=~\"").nth(1).unwrap().split('"').next().unwrap();
        for name in names.split('|') {
            let number: usize = name.trim_start_matches("vm-").parse().unwrap();
            series(&mut result, &vm(number), number, query, start, end);
        }
    }
    result.push(']');
    data("matrix", &result)
}

/// A daily curve with noise, as real loads are.
fn series(result: &mut String, metric: &str, number: usize, query: &str, start: u64, end: u64) {
    let comma = if result.len() > 1 { "," } else { "" };
    write!(result, "{comma}{{\"metric\":{metric},\"values\":[").unwrap();
    for time in (start..=end).step_by(STEP as usize) {
        let day = (time % 86_400) as f64 / 86_400.0 * std::f64::consts::TAU;
        let mixed = (time / STEP).wrapping_add(number as u64 * 7919).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let noise = mixed as f64 / f64::from(1 << 24);
        let share = 0.3 + 0.2 * (day + number as f64).sin() + 0.05 * noise;
        let value = match query {
            query if query.contains("MemAvailable") => 5e11 * (1.0 - share),
            query if query.contains("bytes") => 5e9 + 1e6 * (noise * 10.0).floor(),
            query if query.contains("vmi_cpu") => share * 2.0,
            _ => share,
        };
        let comma = if time > start { "," } else { "" };
        write!(result, "{comma}[{time},\"{value}\"]").unwrap();
    }
    result.push_str("]}");
}
