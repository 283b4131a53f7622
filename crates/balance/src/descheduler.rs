//! Which pods the real descheduler would ask to evict: LowNodeUtilization with a Prometheus metric, as pure functions.
//!
//! With such a metric the plugin knows nothing of what a single pod uses. So it goes by order and limits alone: source
//! nodes by falling score, on each its pods by rising priority, until a limit stops it.

/// Quality of service as Kubernetes derives it, in the order of eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Qos {
    BestEffort,
    #[default]
    Burstable,
    Guaranteed,
}

/// What the descheduler looks at in a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pod {
    /// The caller's own number for it.
    pub id: usize,
    pub priority: i32,
    pub qos: Qos,
    /// `descheduler.alpha.kubernetes.io/prefer-no-eviction`: taken last of its priority and class.
    pub prefer_no_eviction: bool,
    /// Whether the filter of DefaultEvictor lets it through.
    pub evictable: bool,
    /// Whether it tolerates the taints of at least one destination.
    pub tolerates_a_destination: bool,
    /// Its eviction was requested before and has not ended: it is not asked for again, but counts for the plugin.
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

/// The limits of a policy; `None` is without limit.
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
    /// Five in total and two of each node, as the seed says. It takes the plugin's own limit too: see there.
    pub const DEFAULT: Limits = Limits { total: Some(5), per_node: Some(2), plugin_per_node: Some(2) };
}

impl Default for Limits {
    fn default() -> Self {
        Limits::DEFAULT
    }
}

/// What became of a request to evict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvictionResponse {
    /// Evicted, or its evacuation has begun.
    Accepted,
    /// Refused for a reason of its own (not migratable, a disruption budget): the next pod is tried.
    Rejected,
}

/// A pod to evict from a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Eviction {
    pub node: usize,
    pub pod: usize,
}

/// What the descheduler sees of the cluster, and whom it asks.
pub trait ClusterView {
    /// The pods of a node, in an order that is always the same. The real one's order among equals is undefined; here it
    /// is this one.
    fn pods(&self, node: usize, into: &mut Vec<Pod>);

    /// How many evictions of pods of this node are in flight.
    fn in_flight(&self, node: usize) -> usize;

    /// How many evictions are in flight in all.
    fn in_flight_total(&self) -> usize;

    /// Asks for an eviction.
    fn evict(&mut self, eviction: Eviction) -> EvictionResponse;
}

/// Whether the plugin does anything: with `numberOfNodes` unset it needs an over-utilized node, an under-utilized one,
/// and not all of them under-utilized.
pub fn acts(nodes: usize, under: usize, over: usize) -> bool {
    under > 0 && under < nodes && over > 0
}

/// One cycle's evictions, and the buffers to find them without allocating.
#[derive(Debug, Clone, Default)]
pub struct Cycle {
    evictions: Vec<Eviction>,
    pods: Vec<Pod>,
}

impl Cycle {
    pub fn new() -> Self {
        Cycle::default()
    }

    /// Those accepted in the last run.
    pub fn evictions(&self) -> &[Eviction] {
        &self.evictions
    }

    /// Goes through the over-utilized nodes `sources`, which are in order ([`crate::Buckets::sources`]).
    ///
    /// An accepted eviction is assumed to be in flight from then on: it counts against the limits here, and
    /// [`ClusterView::in_flight`] shall not count it within this run.
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

/// Lowest priority first, then by quality of service, then those that do not mind; equals stay in their order.
pub fn in_order_of_eviction(pods: &mut [Pod]) {
    pods.sort_by_key(|pod| (pod.priority, pod.qos, pod.prefer_no_eviction));
}
