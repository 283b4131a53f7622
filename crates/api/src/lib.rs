//! The custom resources `VirtPlatformConfig` and `VirtPlatformPlanRecord`, the lab's `VirtualMachine`, and the names that several
//! programs share. Types only: nothing here performs I/O or decides anything. Whatever the schema can refuse, the API server refuses.

mod schema;
mod string_enum;
mod user_agent;
mod value;

pub mod bounds;
pub mod crd;
pub mod names;
pub mod quantity;
pub mod resource_version;
pub mod virt_platform_config;
pub mod virt_platform_plan_record;
pub mod virtual_machine;

pub use user_agent::{set_user_agent, user_agent};
pub use value::InvalidValue;
pub use virt_platform_config::{VirtPlatformConfig, VirtPlatformConfigSpec, VirtPlatformConfigStatus};
pub use virt_platform_plan_record::{VirtPlatformPlanRecord, VirtPlatformPlanRecordSpec, VirtPlatformPlanRecordStatus};
pub use virtual_machine::{VirtualMachine, VirtualMachineSpec, VirtualMachineStatus};
