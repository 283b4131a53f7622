//! The shapes of loads over time.

use super::{Builder, Result, invalid};
use crate::{
    load::Shape,
    scenario::{Load, Periodic},
    units::Span,
};

/// The highest load as a share of the VM's size. Files of the reference may use more than the whole VM.
const HIGHEST_LOAD: f64 = 32.0;

impl Builder<'_> {
    /// The number of a load's shape. Equal shapes have the same number.
    pub(super) fn shape(&mut self, load: &Load, field: &str) -> Result<u32> {
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
            Load::Points(points) => Shape::Points(checked(points, &format!("{field}.points"))?),
            Load::Periodic(Periodic { every, points }) => {
                let field = format!("{field}.periodic");
                let points = checked(points, &format!("{field}.points"))?;
                if points.last().is_some_and(|(last, _)| *last >= every.0) {
                    return invalid(format!("{field}.every"), format!("{every} is not after the last point"));
                }
                Shape::Periodic(every.0, points)
            }
            Load::Samples(samples) => {
                if samples.every.0 == 0 {
                    return invalid(format!("{field}.samples.every"), "0s is not a length of time above 0");
                }
                if samples.values.0.is_empty() {
                    return invalid(format!("{field}.samples.values"), "it is empty: at least one sample was expected");
                }
                level(load.highest(), format!("{field}.samples.values"))?;
                // Measured loads are all different, so nobody looks for an equal one.
                self.model.shapes.push(Shape::Samples(samples.clone()));
                return Ok(self.model.shapes.len() as u32 - 1);
            }
        };
        let found = self.model.shapes.iter().position(|known| *known == shape);
        Ok(found.unwrap_or_else(|| {
            self.model.shapes.push(shape);
            self.model.shapes.len() - 1
        }) as u32)
    }
}

fn level(value: f64, field: String) -> Result<()> {
    if (0.0..=HIGHEST_LOAD).contains(&value) {
        Ok(())
    } else {
        invalid(field, format!("{value} is not a load: a share from 0 to 1 was expected"))
    }
}

/// Points in order of time, at least one of them.
fn checked(points: &[(Span, f64)], field: &str) -> Result<Vec<(u64, f64)>> {
    if points.is_empty() {
        return invalid(field, "it is empty: at least one point was expected");
    }
    for (at, (time, value)) in points.iter().enumerate() {
        level(*value, format!("{field}[{at}]"))?;
        if at > 0 && points[at - 1].0 >= *time {
            return invalid(format!("{field}[{at}]"), format!("{time} is not after the point before"));
        }
    }
    Ok(points.iter().map(|(time, value)| (time.0, *value)).collect())
}
