//! Which pods the real descheduler would ask to evict: LowNodeUtilization with a Prometheus metric, as pure functions.
//! With such a metric the plugin does not know what a single pod uses. Order and limits decide alone: source nodes by
//! falling score, and on each node pods by rising priority, until a limit is reached.

/// Quality of service as Kubernetes derives it, in the order of eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Qos {
    BestEffort,
    #[default]
    Burstable,
    Guaranteed,
}

/// What the descheduler reads of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pod {
    /// The caller's number for the pod.
    pub id: usize,
    pub priority: i32,
    pub qos: Qos,
    /// `descheduler.alpha.kubernetes.io/prefer-no-eviction`: the pod comes last among pods of equal priority and class.
    pub prefer_no_eviction: bool,
    /// Whether the filter of DefaultEvictor accepts the pod.
    pub evictable: bool,
    /// Whether the pod tolerates the taints of at least one destination.
    pub tolerates_a_destination: bool,
    /// Its eviction was requested before and has not ended. It is not requested again, but counts for the plugin.
    pub in_flight: bool,
}

impl Pod {
    /// A pod that nothing protects.
    pub fn new(id: usize) -> Self {
        Pod {
            id,
            priority: 0,
            qos: Qos::default(),
            prefer_no_eviction: false,
            evictable: true,
            tolerates_a_destination: true,
            in_flight: false,
        }
    }
}

/// The limits of a policy; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// `maxNoOfPodsToEvictTotal`.
    pub total: Option<usize>,
    /// `maxNoOfPodsToEvictPerNode`.
    pub per_node: Option<usize>,
    /// The plugin's own `evictionLimits.node`. Without it the plugin stops after one pod of each node.
    pub plugin_per_node: Option<usize>,
}

impl Limits {
    /// Five in total and two per node, as the requirements say. This needs the plugin's own limit, see there.
    pub const DEFAULT: Limits = Limits { total: Some(5), per_node: Some(2), plugin_per_node: Some(2) };
}

impl Default for Limits {
    fn default() -> Self {
        Limits::DEFAULT
    }
}

/// The response to an eviction request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvictionResponse {
    /// The pod is evicted, or its evacuation has begun.
    Accepted,
    /// The pod cannot be evicted (not migratable, a disruption budget). The next pod is tried.
    Rejected,
}

/// A pod to evict from a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Eviction {
    pub node: usize,
    pub pod: usize,
}

/// What the descheduler reads of the cluster, and how it evicts.
pub trait ClusterView {
    /// The pods of a node in a stable order. The real descheduler's order of equal pods is undefined; here it is this
    /// one.
    fn pods(&self, node: usize, into: &mut Vec<Pod>);

    /// How many evictions of pods of this node are in flight.
    fn in_flight(&self, node: usize) -> usize;

    /// How many evictions are in flight in all.
    fn in_flight_total(&self) -> usize;

    /// Requests an eviction.
    fn evict(&mut self, eviction: Eviction) -> EvictionResponse;
}

/// Whether the plugin does anything: with `numberOfNodes` unset it needs an over-utilized node, an under-utilized one,
/// and not all of them under-utilized.
pub fn acts(nodes: usize, under: usize, over: usize) -> bool {
    under > 0 && under < nodes && over > 0
}

/// The evictions of one cycle, with buffers that are reused.
#[derive(Debug, Clone, Default)]
pub struct Cycle {
    evictions: Vec<Eviction>,
    pods: Vec<Pod>,
}

impl Cycle {
    pub fn new() -> Self {
        Cycle::default()
    }

    /// The evictions that were accepted in the last run.
    pub fn evictions(&self) -> &[Eviction] {
        &self.evictions
    }

    /// Goes through the over-utilized nodes `sources`, in order ([`crate::Buckets::sources`]). An accepted eviction counts as in
    /// flight here, and [`ClusterView::in_flight`] shall not count it within this run.
    pub fn run(&mut self, sources: &[usize], limits: &Limits, cluster: &mut impl ClusterView) -> &[Eviction] {
        self.evictions.clear();
        let before = cluster.in_flight_total();
        for &node in sources {
            let on_node = cluster.in_flight(node);
            self.pods.clear();
            cluster.pods(node, &mut self.pods);
            self.pods.retain(|pod| pod.evictable);
            in_order_of_eviction(&mut self.pods);
            let (mut counted, mut done) = (0, 0);
            for pod in &self.pods {
                if limits.plugin_per_node.is_some_and(|limit| counted >= limit) {
                    break;
                }
                if !pod.tolerates_a_destination {
                    continue;
                }
                if !pod.in_flight {
                    if limits.total.is_some_and(|limit| before + self.evictions.len() + 1 > limit) {
                        return &self.evictions;
                    }
                    if limits.per_node.is_some_and(|limit| on_node + done + 1 > limit) {
                        break;
                    }
                    let eviction = Eviction { node, pod: pod.id };
                    if cluster.evict(eviction) == EvictionResponse::Rejected {
                        continue;
                    }
                    self.evictions.push(eviction);
                    done += 1;
                }
                counted += 1;
                if limits.plugin_per_node.is_none() {
                    break;
                }
            }
        }
        &self.evictions
    }
}

/// Sorts by priority, quality of service and `prefer_no_eviction`. Equal pods stay in their order.
pub fn in_order_of_eviction(pods: &mut [Pod]) {
    pods.sort_by_key(|pod| (pod.priority, pod.qos, pod.prefer_no_eviction));
}
