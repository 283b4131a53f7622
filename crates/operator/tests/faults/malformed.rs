//! Objects that cannot be parsed, written to etcd in every phase of the life cycle of another one.

use std::sync::atomic::{AtomicU32, Ordering};

use operator::OperatorSettings;
use serde_json::json;
use testkit::configs::config;

use crate::{control_plane::conclude, lifecycle::Lifecycle, matrix::prepare, supervisor::Supervised};

#[tokio::test(flavor = "multi_thread")]
async fn malformed_objects_that_come_and_change_in_every_phase_stop_nobody_else() {
    let (platform, baseline) = prepare(Lifecycle::Usual).await;
    let mark = platform.mark().await;
    let count = AtomicU32::new(1);
    let store = async || {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let mut object = config("example-profile", json!({"action": "Apply", "waitTimeout": number}));
        object["metadata"]["uid"] = "00000000-0000-0000-0000-000000000001".into();
        object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        object["metadata"]["generation"] = number.into();
        let key = "/registry/advisor.kubevirt.io/virtplatformconfigs/example-profile";
        platform.cluster.store(key, object.to_string().as_bytes()).await.unwrap();
    };
    store().await;
    let operator = Supervised::start(&platform, OperatorSettings::default()).await;
    Lifecycle::Usual.run(&platform, async |_, _| store().await).await;
    let about_it = operator.proxy.record().count("PATCH virtplatformconfigs/example-profile/status");
    let stored = count.load(Ordering::Relaxed) as usize;
    assert!((1..=stored).contains(&about_it), "told {about_it} times of {stored}");
    conclude(&platform, &baseline, mark, operator, baseline.requests.len() + 2 * stored).await;
}
