//! The JSON schema of what commands print for programs.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use crate::{
    doctor::DoctorReport,
    drift::DriftReport,
    explain::ProfileExplanation,
    forecast::{CheckReport, ForecastReport},
    history::History,
    impact::report::ImpactReport,
    list::ConfigList,
    output::Document,
    plan::PlanReport,
    status::StatusReport,
};

pub(super) fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let documents = [
        document::<ConfigList>("ConfigList", &mut generator),
        document::<PlanReport>("PlanReport", &mut generator),
        document::<DriftReport>("DriftReport", &mut generator),
        document::<History>("History", &mut generator),
        document::<ProfileExplanation>("ProfileExplanation", &mut generator),
        document::<ImpactReport<'static>>("ImpactReport", &mut generator),
        document::<ForecastReport>("Forecast", &mut generator),
        document::<CheckReport>("ForecastCheck", &mut generator),
        document::<StatusReport>("StatusReport", &mut generator),
        document::<DoctorReport>("DoctorReport", &mut generator),
    ];
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What virt-advisor prints with -o json and -o yaml",
        "oneOf": documents,
        "$defs": generator.take_definitions(true),
    })
}

/// The schema of a document, whose kind says which it is.
fn document<T: JsonSchema>(kind: &str, generator: &mut SchemaGenerator) -> Value {
    let mut schema = Document::<T>::json_schema(generator).to_value();
    schema["title"] = kind.into();
    schema["properties"]["apiVersion"]["const"] = Document::<T>::API_VERSION.into();
    schema["properties"]["kind"]["const"] = kind.into();
    schema
}
