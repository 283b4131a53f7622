//! Runs the operator behind the proxy, ends it when the proxy says so, and starts another one in its place.

use kube::Config;
use operator::Settings;
use testkit::platform::Platform;
use tokio::task::JoinHandle;

use crate::proxy::Proxy;

pub(crate) struct Supervised {
    pub(crate) proxy: Proxy,
    task: JoinHandle<()>,
}

impl Supervised {
    pub(crate) async fn start(platform: &Platform, settings: Settings) -> Supervised {
        Supervised::behind(proxy(platform).await, settings)
    }

    pub(crate) fn behind(proxy: Proxy, settings: Settings) -> Supervised {
        let task = tokio::spawn(supervise(proxy.clone(), settings));
        Supervised { proxy, task }
    }

    /// Returns when nothing runs any more. Fails if the operator has tried what it has no right to.
    pub(crate) async fn stop(mut self) {
        self.task.abort();
        let ended = (&mut self.task).await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "the operator ended by itself");
        let forbidden = self.proxy.record().forbidden.clone();
        assert!(forbidden.is_empty(), "the rights that it is shipped with do not suffice: {forbidden:#?}");
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A proxy with the operator's credentials.
pub(crate) async fn proxy(platform: &Platform) -> Proxy {
    Proxy::new(platform.cluster.access().client_for(&platform.operator().await).await.unwrap())
}

async fn supervise(proxy: Proxy, settings: Settings) {
    loop {
        let door = proxy.open().await;
        let config = Config::new(format!("http://{}", door.address).parse().unwrap());
        tokio::select! {
            ended = operator::run(config, settings.clone(), std::future::pending()) => {
                panic!("the operator ended: {ended:?}")
            }
            // It is dropped in the middle of whatever it does, and its connections with it.
            () = proxy.crash() => {}
        }
        drop(door);
    }
}
