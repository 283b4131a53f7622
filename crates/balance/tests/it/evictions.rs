//! Which pods the descheduler would evict: order, limits and evictions in flight.

use balance::descheduler::{
    ClusterView, Cycle, Eviction, EvictionResponse, Limits, Pod, Qos, acts, in_order_of_eviction,
};

/// Pods by node. Evictions of pods in `rejecting` are rejected.
#[derive(Default)]
struct TestCluster {
    nodes: Vec<Vec<Pod>>,
    rejecting: Vec<usize>,
    requested: Vec<usize>,
}

impl ClusterView for TestCluster {
    fn pods(&self, node: usize, into: &mut Vec<Pod>) {
        into.extend(&self.nodes[node]);
    }

    fn in_flight(&self, node: usize) -> usize {
        self.nodes[node].iter().filter(|pod| pod.in_flight).count()
    }

    fn in_flight_total(&self) -> usize {
        (0..self.nodes.len()).map(|node| self.in_flight(node)).sum()
    }

    fn evict(&mut self, eviction: Eviction) -> EvictionResponse {
        self.requested.push(eviction.pod);
        if self.rejecting.contains(&eviction.pod) { EvictionResponse::Rejected } else { EvictionResponse::Accepted }
    }
}

/// Nodes with four pods each: 10 to 13 on the second node, and so on.
fn cluster(nodes: usize) -> TestCluster {
    let pods = |node: usize| (0..4).map(|at| Pod::new(10 * node + at)).collect();
    TestCluster { nodes: (0..nodes).map(pods).collect(), ..TestCluster::default() }
}

fn evicted(cluster: &mut TestCluster, sources: &[usize], limits: Limits) -> Vec<usize> {
    Cycle::new().run(sources, &limits, cluster).iter().map(|eviction| eviction.pod).collect()
}

#[test]
fn two_of_each_node_and_five_in_all() {
    assert_eq!(evicted(&mut cluster(4), &[2, 0, 3, 1], Limits::DEFAULT), [20, 21, 0, 1, 30]);
}

#[test]
fn without_the_plugins_own_limit_one_pod_of_each_node_goes() {
    let limits = Limits { plugin_per_node: None, ..Limits::DEFAULT };
    assert_eq!(evicted(&mut cluster(3), &[0, 1, 2], limits), [0, 10, 20]);
}

#[test]
fn without_any_global_limit_the_plugins_own_is_the_only_one() {
    let limits = Limits { total: None, per_node: None, plugin_per_node: Some(3) };
    assert_eq!(evicted(&mut cluster(2), &[0, 1], limits), [0, 1, 2, 10, 11, 12]);
}

#[test]
fn what_is_in_flight_counts_against_both_limits() {
    // The eviction of the last pod of the first node is in flight.
    let mut moving = cluster(4);
    moving.nodes[0][3].in_flight = true;
    assert_eq!(evicted(&mut moving, &[0, 1, 2, 3], Limits::DEFAULT), [0, 10, 11, 20], "1 + 4 are five");

    let mut full = cluster(4);
    full.nodes[3].iter_mut().for_each(|pod| pod.in_flight = true);
    assert_eq!(evicted(&mut full, &[0, 1], Limits::DEFAULT), [0], "4 + 1 are five");

    let mut fuller = cluster(4);
    (0..5).for_each(|at| fuller.nodes[2 + at / 4][at % 4].in_flight = true);
    assert_eq!(evicted(&mut fuller, &[0, 1], Limits::DEFAULT), [0; 0]);
    assert!(fuller.requested.is_empty(), "nothing is requested beyond the limit");
}

#[test]
fn a_pod_in_flight_is_not_requested_again_but_uses_up_the_plugins_limit() {
    let mut moving = cluster(2);
    moving.nodes[0][0].in_flight = true;
    let limits = Limits { total: Some(9), per_node: Some(9), plugin_per_node: Some(2) };
    assert_eq!(evicted(&mut moving, &[0, 1], limits), [1, 10, 11]);
    assert_eq!(moving.requested, [1, 10, 11]);
}

#[test]
fn a_rejection_does_not_count_and_the_next_pod_is_tried() {
    let mut rejecting = TestCluster { rejecting: vec![0, 1], ..cluster(1) };
    assert_eq!(evicted(&mut rejecting, &[0], Limits::DEFAULT), [2, 3]);
    assert_eq!(rejecting.requested, [0, 1, 2, 3]);
}

#[test]
fn protected_pods_and_those_without_a_destination_stay() {
    let mut cluster = cluster(1);
    cluster.nodes[0][0].evictable = false;
    cluster.nodes[0][2].tolerates_a_destination = false;
    assert_eq!(evicted(&mut cluster, &[0], Limits::DEFAULT), [1, 3]);
}

#[test]
fn pods_go_by_priority_then_class_then_willingness() {
    let pod = |id, priority, qos, prefer_no_eviction| Pod { priority, qos, prefer_no_eviction, ..Pod::new(id) };
    let mut pods = [
        pod(0, 5, Qos::BestEffort, false),
        pod(1, 0, Qos::Guaranteed, false),
        pod(2, 0, Qos::Burstable, true),
        pod(3, 0, Qos::Burstable, false),
        pod(4, 0, Qos::BestEffort, true),
        pod(5, 0, Qos::Burstable, false),
        pod(6, -1, Qos::Guaranteed, true),
    ];
    in_order_of_eviction(&mut pods);
    assert_eq!(pods.map(|pod| pod.id), [6, 4, 3, 5, 2, 1, 0]);
}

#[test]
fn it_acts_only_with_a_source_a_destination_and_not_all_under() {
    for (nodes, under, over, expected) in
        [(3, 1, 1, true), (3, 0, 1, false), (3, 3, 0, false), (3, 1, 0, false), (0, 0, 0, false)]
    {
        assert_eq!(acts(nodes, under, over), expected, "{under} under and {over} over of {nodes}");
    }
}
