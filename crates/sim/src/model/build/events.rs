//! The events of nodes, by step.

use super::{Builder, Result, invalid};
use crate::model::NodeEvent;

impl Builder<'_> {
    pub(super) fn events(&mut self) -> Result<()> {
        for (position, event) in self.scenario.events.iter().enumerate() {
            let field = format!("events[{position}]");
            let step = event.at.0.div_ceil(self.model.step);
            type Make = fn(u32) -> NodeEvent;
            let named: [(&str, &Option<String>, Make); 5] = [
                ("cordon", &event.cordon, NodeEvent::Cordon),
                ("uncordon", &event.uncordon, NodeEvent::Uncordon),
                ("drain", &event.drain, NodeEvent::Drain),
                ("fail", &event.fail, NodeEvent::Fail),
                ("recover", &event.recover, NodeEvent::Recover),
            ];
            let given = named.iter().filter(|(_, name, _)| name.is_some()).count() + usize::from(event.add.is_some());
            if given != 1 {
                return invalid(
                    field,
                    format!(
                        "it has {given} actions: exactly one of cordon, uncordon, drain, fail, recover and add was expected"
                    ),
                );
            }
            for (action, name, make) in named {
                let Some(name) = name else { continue };
                let Some(nodes) = self.by_name.get(name) else {
                    return invalid(format!("{field}.{action}"), self.no_node(name));
                };
                self.model.events.extend(nodes.iter().map(|node| (step, make(*node))));
            }
            if let Some(group) = &event.add {
                let nodes = &self.by_name[&group.name];
                self.model.events.extend(nodes.iter().map(|node| (step, NodeEvent::Join(*node))));
            }
        }
        self.model.events.sort_by_key(|(step, _)| *step);
        Ok(())
    }
}
