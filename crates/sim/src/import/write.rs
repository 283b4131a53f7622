//! Writes a scenario piece by piece: head, VMs, nodes. What is written is never held as a whole.

use std::io::{self, Write};

use serde::Serialize;

use crate::{
    scenario::{NodeGroup, Rebalancing, VmGroup},
    units::{ClockTime, Span},
};

/// A scenario without its nodes and VMs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) step: Span,
    pub(super) duration: Span,
    pub(super) start: ClockTime,
    pub(super) rebalancing: &'a Rebalancing,
}

#[derive(Debug)]
pub(super) struct ScenarioWriter<W> {
    out: W,
    vms: usize,
}

impl<W: Write> ScenarioWriter<W> {
    pub(super) fn new(mut out: W, head: &Head<'_>) -> io::Result<Self> {
        let head = serde_json::to_string(head)?;
        // A line for each object: other programs can read them one by one.
        write!(out, "{},\n\"vms\":[\n", &head[..head.len() - 1])?;
        Ok(Self { out, vms: 0 })
    }

    pub(super) fn vm(&mut self, vm: &VmGroup) -> io::Result<()> {
        if self.vms > 0 {
            self.out.write_all(b",\n")?;
        }
        self.vms += 1;
        Ok(serde_json::to_writer(&mut self.out, vm)?)
    }

    pub(super) fn finish(mut self, nodes: &[NodeGroup]) -> io::Result<W> {
        self.out.write_all(b"\n],\n\"nodes\":[\n")?;
        for (at, node) in nodes.iter().enumerate() {
            if at > 0 {
                self.out.write_all(b",\n")?;
            }
            serde_json::to_writer(&mut self.out, node)?;
        }
        self.out.write_all(b"\n]}\n")?;
        Ok(self.out)
    }
}
