//! A cluster of three workers and eight VMs, and its week: a server that answers as the API server and as Prometheus do.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
};

use jiff::Timestamp;
use serde_json::{Value, json};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
const NAMESPACE: &str = "shop";
const WORKERS: [&str; 3] = ["worker-0", "worker-1", "worker-2"];
const MASTER: &str = "master-0";
const VMS: [&str; 8] = ["web-0", "web-1", "web-2", "web-3", "db-0", "db-1", "batch", "legacy"];
/// It was measured, and is gone.
const GONE: &str = "job";

/// Answers for as long as the process of the test lives. Returns the address.
pub(super) fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || answer_all(stream));
        }
    });
    url
}

fn answer_all(mut stream: TcpStream) {
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
        let body = answer(first.split(' ').nth(1).unwrap()).to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}

fn answer(target: &str) -> Value {
    let (path, arguments) = target.split_once('?').unwrap();
    let arguments: HashMap<String, String> = form_urlencoded::parse(arguments.as_bytes()).into_owned().collect();
    let list = |items: Vec<Value>| json!({"metadata": {}, "items": items});
    let data = |result: Value| json!({"status": "success", "data": {"result": result}});
    let number = |name: &str| arguments[name].parse::<u64>().unwrap();
    match path {
        "/api/v1/nodes" => list(WORKERS.iter().chain([&MASTER]).map(|name| node(name)).collect()),
        "/apis/kubevirt.io/v1/virtualmachineinstances" => list(VMS.iter().map(|name| instance(name)).collect()),
        "/api/v1/pods" => list(VMS.iter().map(|name| launcher(name)).collect()),
        "/api/v1/series" => {
            json!({"status": "success", "data": VMS.iter().chain([&GONE]).map(|name| labels(name)).collect::<Vec<_>>()})
        }
        "/api/v1/query" => data(value(&arguments["query"])),
        "/api/v1/query_range" => {
            let [start, end, step] = ["start", "end", "step"].map(number);
            let ages: Vec<u64> = (start..=end).step_by(step as usize).map(|time| end - time).collect();
            data(matrix(&arguments["query"], end, &ages))
        }
        path => panic!("{path} is not expected"),
    }
}

fn node(name: &str) -> Value {
    let is_worker = name != MASTER;
    let role = if is_worker { "node-role.kubernetes.io/worker" } else { "node-role.kubernetes.io/control-plane" };
    let taints = if is_worker { json!([]) } else { json!([{"key": role, "effect": "NoSchedule"}]) };
    json!({
        "metadata": {"name": name, "labels": {role: "", "kubevirt.io/schedulable": is_worker.to_string()}},
        "spec": {"taints": taints},
        "status": {
            "capacity": {"cpu": "32", "memory": "128Gi", "pods": "250"},
            "allocatable": {"cpu": "31500m", "memory": "124Gi", "pods": "250"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// Where a VM runs.
fn host(name: &str) -> &'static str {
    VMS.iter().position(|known| *known == name).map_or(WORKERS[0], |number| WORKERS[number % 3])
}

fn instance(name: &str) -> Value {
    let app = name.split('-').next().unwrap();
    let affinity = (app == "db").then(|| {
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}]}})
    });
    let condition = match app {
        "legacy" => json!({"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable"}),
        _ => json!({"type": "LiveMigratable", "status": "True"}),
    };
    json!({
        "metadata": {"namespace": NAMESPACE, "name": name, "uid": name, "labels": {"app": app}},
        "spec": {"domain": {"cpu": {"cores": 4}, "memory": {"guest": "16Gi"}}, "affinity": affinity},
        "status": {"phase": "Running", "nodeName": host(name), "conditions": [condition]},
    })
}

fn launcher(name: &str) -> Value {
    let requests = json!({"cpu": "400m", "memory": "16800Mi"});
    json!({
        "metadata": {
            "namespace": NAMESPACE, "name": format!("virt-launcher-{name}"), "labels": {"kubevirt.io/created-by": name},
        },
        "spec": {"nodeName": host(name), "containers": [{"name": "compute", "resources": {"requests": requests}}]},
        "status": {"phase": "Running"},
    })
}

fn labels(vm: &str) -> Value {
    json!({"namespace": NAMESPACE, "name": vm, "node": host(vm)})
}

/// An instant query. Nodes do not measure pressure.
fn value(query: &str) -> Value {
    let now = Timestamp::now().as_millisecond() as f64 / 1000.0;
    let single = |value: usize| json!([{"metric": {}, "value": [now, value.to_string()]}]);
    match query {
        "time()" => json!([now, now.to_string()]),
        query if query.contains("pressure") => json!([]),
        query if query.starts_with("count(node_") => single(WORKERS.len() + 1),
        query if query.starts_with("count(kubevirt_") => single(VMS.len()),
        query if query.starts_with("sum(resets(") => single(1),
        query if query.contains('[') => {
            let values: Vec<Value> = (0..10).rev().map(|scrape| json!([now - 30.0 * f64::from(scrape), "1"])).collect();
            json!([{"metric": {}, "values": values}])
        }
        _ => json!([]),
    }
}

/// A range query, for samples that are so many seconds older than the last.
fn matrix(query: &str, end: u64, ages: &[u64]) -> Value {
    let series = |metric: Value, sample: &dyn Fn(u64) -> Option<f64>| {
        let known = ages.iter().filter_map(|age| Some(json!([end - age, sample(*age)?.to_string()])));
        json!({"metric": metric, "values": known.collect::<Vec<_>>()})
    };
    if query.contains("node_") {
        let of_node = |name: &&str| {
            let sample = |age: u64| match query {
                query if query.contains("MemAvailable") => Some(64e9),
                _ => Some(0.5 + 0.1 * daily(age)),
            };
            series(json!({"instance": name}), &sample)
        };
        return WORKERS.iter().chain([&MASTER]).map(of_node).collect();
    }
    let asked = query.split("name=~\"").nth(1).unwrap().split('"').next().unwrap();
    let of_vm = |name: &str| {
        let sample = |age: u64| {
            let is_measured = match name {
                "batch" => age < 2 * DAY,
                GONE => age > DAY,
                "web-1" => !(3 * DAY..3 * DAY + HOUR).contains(&age),
                _ => true,
            };
            let used = if query.contains("cpu") { 2.0 + daily(age) } else { 8e9 };
            is_measured.then_some(used)
        };
        series(labels(name), &sample)
    };
    asked.split('|').map(of_vm).collect()
}

/// From -1 to 1 and back each day.
fn daily(age: u64) -> f64 {
    ((age % DAY) as f64 / DAY as f64 * std::f64::consts::TAU).cos()
}
