//! Alerts, runbooks and the dashboard, on real programs: promtool, Prometheus, and the operator that it scrapes.

mod cases;
mod night;
mod panels;
mod prometheus;
mod promtool;
mod runbooks;
mod situations;
