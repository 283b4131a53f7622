//! Runs the operator behind the proxy, ends it when the proxy asks for that, and starts it again.

use kube::Config;
use operator::OperatorSettings;
use testkit::platform::Platform;
use tokio::task::JoinHandle;

use crate::proxy::Proxy;

pub(crate) struct Supervised {
    pub(crate) proxy: Proxy,
    task: JoinHandle<()>,
}

impl Supervised {
    pub(crate) async fn start(platform: &Platform, settings: OperatorSettings) -> Supervised {
        Supervised::behind(proxy(platform).await, settings)
    }

    pub(crate) fn behind(proxy: Proxy, settings: OperatorSettings) -> Supervised {
        let task = tokio::spawn(supervise(proxy.clone(), settings));
        Supervised { proxy, task }
    }

    /// Stops the operator. Fails if a request of it was forbidden.
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

/// A proxy with the credentials of the operator.
pub(crate) async fn proxy(platform: &Platform) -> Proxy {
    Proxy::new(platform.cluster.access().client_for(&platform.operator().await).await.unwrap())
}

async fn supervise(proxy: Proxy, settings: OperatorSettings) {
    loop {
        let listener = proxy.listen().await;
        let config = Config::new(format!("http://{}", listener.address).parse().unwrap());
        tokio::select! {
            ended = operator::run(config, settings.clone(), std::future::pending()) => {
                panic!("the operator ended: {ended:?}")
            }
            // The operator is dropped in the middle of its work, with its connections.
            () = proxy.crash() => {}
        }
        drop(listener);
    }
}
