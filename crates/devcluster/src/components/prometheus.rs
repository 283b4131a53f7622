//! Prometheus: API only, with a configuration and rule files of the caller's.

use super::{ClusterFiles, Launch};
use crate::{error::Result, ports::Port};

#[derive(Debug, Clone)]
pub struct Prometheus {
    /// `prometheus.yml`. Rule files named in it are looked for beside it.
    pub config: String,
    /// File name and text of each rule file.
    pub rules: Vec<(String, String)>,
    /// Flags beyond ours.
    pub flags: Vec<String>,
    /// Where it shall listen if that is free.
    pub port: Option<u16>,
}

impl Default for Prometheus {
    /// Scrapes nothing.
    fn default() -> Self {
        Prometheus {
            config: "global: {scrape_interval: 15s}\n".into(),
            rules: Vec::new(),
            flags: Vec::new(),
            port: None,
        }
    }
}

impl Prometheus {
    pub(crate) fn launch(&self, files: &ClusterFiles, port: Port) -> Result<Launch> {
        for (name, text) in &self.rules {
            files.write(name, text)?;
        }
        let mut args = vec![
            format!("--config.file={}", files.write("prometheus.yml", &self.config)?),
            format!("--storage.tsdb.path={}", files.path("prometheus")),
            format!("--web.listen-address={}", port.address()),
            // `POST /-/reload` lets rules change without a restart.
            "--web.enable-lifecycle".into(),
            // A lock file would stop a restart after kill -9.
            "--storage.tsdb.no-lockfile".into(),
            "--log.level=warn".into(),
        ];
        args.extend(self.flags.iter().cloned());
        Ok(Launch { args, url: format!("http://{}", port.address()), ready: "/-/ready", port })
    }
}
