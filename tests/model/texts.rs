//! The texts of the objects of a cluster. Each is made once: the checker places a cluster for every write that it judges.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use interlock_engine::object::ObjectKey;

use crate::cluster::{Cluster, Object, Other, Record};
use crate::objects::{self, NOW};

/// The objects of a cluster.
pub(crate) type Placed = BTreeMap<Rc<ObjectKey>, Rc<str>>;

type Text = (Rc<ObjectKey>, Rc<str>);

#[derive(Default)]
pub(crate) struct Texts {
    records: HashMap<Record, Text>,
    /// The object of the release, each with whether the release is OLM's.
    objects: HashMap<(Object, bool), Text>,
    others: HashMap<Other, Text>,
}

impl Texts {
    pub(crate) fn of(&mut self, cluster: &Cluster) -> Placed {
        let mut placed = Placed::new();
        for record in cluster.records() {
            let text = self.records.entry(*record).or_insert_with(|| {
                let key = objects::record_key(record.body.driver, record.body.revision);
                (Rc::new(key), objects::stored(record, NOW).to_string().into())
            });
            placed.extend([text.clone()]);
        }
        if let Some(object) = cluster.object {
            let is_extension = cluster.is_extension();
            let text = self.objects.entry((object, is_extension)).or_insert_with(|| {
                (Rc::new(objects::deployment_key()), objects::deployment(&object, is_extension).to_string().into())
            });
            placed.extend([text.clone()]);
        }
        for other in &cluster.others {
            let text = self.others.entry(*other).or_insert_with(|| {
                let object = objects::other(*other, NOW);
                (Rc::new(objects::key_of(&object)), object.to_string().into())
            });
            placed.extend([text.clone()]);
        }
        placed
    }
}
