//! Clients that interfere with the writes of a controller.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use api::VirtualMachine;
use http::{Method, Request};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    client::Body,
};
use serde_json::json;
use tokio::sync::Notify;

/// Whether the last write of a controller reaches the server before the controller stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// Counts writes and never answers one of them, so the controller that waits for it does nothing any more.
#[derive(Debug)]
pub(super) struct Death {
    at: usize,
    side: Side,
    writes: AtomicUsize,
    pub(super) happened: Notify,
}

/// A client that answers neither the `at`th write, counted from 0, nor any later one.
pub(super) fn mortal(client: Client, at: usize, side: Side) -> (Client, Arc<Death>) {
    let death = Arc::new(Death { at, side, writes: AtomicUsize::new(0), happened: Notify::new() });
    let gate = death.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, gate) = (client.clone(), gate.clone());
        async move {
            if request.method() != Method::GET {
                let number = gate.writes.fetch_add(1, Ordering::SeqCst);
                if number == gate.at && gate.side == Side::After {
                    client.send(request).await?;
                    gate.happened.notify_one();
                    return pending().await;
                }
                if number >= gate.at {
                    gate.happened.notify_one();
                    return pending().await;
                }
            }
            client.send(request).await
        }
    });
    (Client::new(service, "default"), death)
}

/// Another client changes the VM before each of the first `times` writes of a status.
pub(super) fn overtaken(client: Client, other: Client, times: usize) -> Client {
    let left = Arc::new(AtomicUsize::new(times));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, other, left) = (client.clone(), other.clone(), left.clone());
        async move {
            let path = request.uri().path().to_owned();
            let vm = path.strip_suffix("/status").and_then(|path| path.rsplit('/').next());
            if request.method() != Method::GET
                && let Some(vm) = vm
                && let Ok(number) = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            {
                let vms: Api<VirtualMachine> = Api::default_namespaced(other);
                let patch = Patch::Merge(json!({"metadata": {"annotations": {"overtaken": number.to_string()}}}));
                let changed = vms.patch(vm, &PatchParams::default(), &patch).await?;
                assert!(changed.resource_version().is_some());
            }
            client.send(request).await
        }
    });
    Client::new(service, "default")
}
