//! Everything that is not a test: control planes, clients, charts, stand-ins for controllers, and views of records and
//! decisions.

pub(crate) mod acts;
pub(crate) mod addon_controller;
pub(crate) mod application_sets;
pub(crate) mod applications;
pub(crate) mod archive;
pub(crate) mod assets;
pub(crate) mod balancer;
pub(crate) mod chart;
pub(crate) mod clients;
pub(crate) mod clock;
pub(crate) mod cluster;
pub(crate) mod controllers;
pub(crate) mod decisions;
pub(crate) mod eventually;
pub(crate) mod extension;
pub(crate) mod forging;
pub(crate) mod gate;
pub(crate) mod helm_releases;
pub(crate) mod in_flight;
pub(crate) mod k9s;
pub(crate) mod kubectl_server;
pub(crate) mod kubelet;
pub(crate) mod kustomizations;
pub(crate) mod load;
pub(crate) mod managed_fields;
pub(crate) mod namespace;
pub(crate) mod origins;
pub(crate) mod plane;
pub(crate) mod process;
pub(crate) mod profile;
pub(crate) mod records;
pub(crate) mod rendered;
pub(crate) mod shell;
pub(crate) mod tls_client;
pub(crate) mod webhook;
