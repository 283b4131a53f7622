//! The shapes of loads over time.

use super::{Builder, Result, invalid};
use crate::{load::Shape, scenario::Load};

/// The highest load as a share of the VM's size. Files of the reference may use more than the whole VM.
const HIGHEST_LOAD: f64 = 32.0;

impl Builder<'_> {
    /// The number of a load's shape. Equal shapes have the same number.
    pub(super) fn shape(&mut self, load: &Load, field: &str) -> Result<u32> {
        let level = |value: f64, field: String| {
            if (0.0..=HIGHEST_LOAD).contains(&value) {
                Ok(())
            } else {
                invalid(field, format!("{value} is not a load: a share from 0 to 1 was expected"))
            }
        };
        let shape = match load {
            Load::Constant(value) => {
                level(*value, field.to_owned())?;
                return Ok(0);
            }
            Load::Between([low, high]) => {
                level(*low, format!("{field}.between"))?;
                level(*high, format!("{field}.between"))?;
                if low > high {
                    return invalid(format!("{field}.between"), format!("{low} is above {high}"));
                }
                return Ok(0);
            }
            Load::Ramp(ramp) => {
                level(ramp.from, format!("{field}.ramp.from"))?;
                level(ramp.to, format!("{field}.ramp.to"))?;
                if ramp.end < ramp.start {
                    return invalid(
                        format!("{field}.ramp.end"),
                        format!("{} is before the start, {}", ramp.end, ramp.start),
                    );
                }
                Shape::Points(vec![(ramp.start.0, ramp.from), (ramp.end.0, ramp.to)])
            }
            Load::Daily(daily) => {
                level(daily.low, format!("{field}.daily.low"))?;
                level(daily.high, format!("{field}.daily.high"))?;
                level(daily.weekend, format!("{field}.daily.weekend"))?;
                Shape::Daily(daily.clone())
            }
            Load::Points(points) => {
                if points.is_empty() {
                    return invalid(format!("{field}.points"), "it is empty: at least one point was expected");
                }
                for (at, (time, value)) in points.iter().enumerate() {
                    level(*value, format!("{field}.points[{at}]"))?;
                    if at > 0 && points[at - 1].0 >= *time {
                        return invalid(
                            format!("{field}.points[{at}]"),
                            format!("{time} is not after the point before"),
                        );
                    }
                }
                Shape::Points(points.iter().map(|(time, value)| (time.0, *value)).collect())
            }
        };
        let found = self.model.shapes.iter().position(|known| *known == shape);
        Ok(found.unwrap_or_else(|| {
            self.model.shapes.push(shape);
            self.model.shapes.len() - 1
        }) as u32)
    }
}
