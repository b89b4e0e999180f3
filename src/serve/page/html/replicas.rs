//! The replicas.

use std::fmt::{self, Write};

use super::parts::{heading, not_read};
use crate::inspect::html::{Escaped, grouped};
use crate::serve::page::replicas::{Replica, ReplicaState};
use crate::serve::page::snapshot::Snapshot;

/// Nothing without a cluster.
pub(super) fn replicas(out: &mut String, shown: &Snapshot) -> fmt::Result {
    let Some(replicas) = &shown.replicas else { return Ok(()) };
    let replicas = match replicas {
        Ok(replicas) => replicas,
        Err(why) => {
            heading(out, "replicas", "Replicas", "unknown")?;
            not_read(out, why)?;
            return writeln!(out, "</section>");
        }
    };
    let ready = replicas.iter().filter(|it| it.state == ReplicaState::Ready).count();
    heading(out, "replicas", "Replicas", &format!("{} of {} ready", grouped(ready), grouped(replicas.len())))?;
    if !replicas.is_empty() && !replicas.iter().any(|it| it.leads) {
        out.push_str("<p class=\"gap\">None of them leads: nobody scans, and the reports stand still.</p>\n");
    }
    out.push_str("<ul class=\"cards\">\n");
    replicas.iter().try_for_each(|it| replica(out, it))?;
    out.push_str("</ul>\n</section>\n");
    Ok(())
}

fn replica(out: &mut String, Replica { pod, node, state, leads, is_this }: &Replica) -> fmt::Result {
    let (tone, state) = match state {
        ReplicaState::Ready => ("low", "ready"),
        ReplicaState::NotReady => ("high", "not ready"),
        ReplicaState::Terminating => ("medium", "terminating"),
    };
    let leads = if *leads { " · leads" } else { "" };
    let is_this = if *is_this { " · shows this page" } else { "" };
    writeln!(
        out,
        "<li class=\"{tone}\"><p class=\"what\"><b>{}</b> <span class=\"severity\">{state}</span></p>\
         <p class=\"way-out\">on {}{leads}{is_this}</p></li>",
        Escaped(pod),
        Escaped(node),
    )
}
