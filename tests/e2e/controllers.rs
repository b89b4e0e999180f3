//! Flux, OLM and Sveltos in front of the webhook.

mod argo;
mod argo_settings;
mod departures;
mod drivers;
mod flux;
mod helm_releases;
mod kustomization;
mod olm;
mod olm_resume;
mod profiles;
mod statuses;
mod sveltos;
