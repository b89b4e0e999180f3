//! The bundles of a chart are numbered. The last one alone does not make the chart complete.

use serde_json::json;

use super::*;

/// The names of the bundles of db with these numbers, out of three.
fn db(shop: &Shop, numbers: &[usize]) -> Vec<String> {
    let all = shop.stage("db", 3);
    numbers.iter().map(|number| all[*number].clone()).collect()
}

fn with_db(shop: &Shop, db: Vec<String>) -> Value {
    group(&[shop.stage("web", 1), shop.stage("cache", 2), db].concat())
}

#[test]
fn each_bundle_up_to_the_last_one_is_required() {
    let shop = Shop::new();
    shop.create(&with_db(&shop, db(&shop, &[2, 0, 1]))).admitted();
    for (numbers, lacks) in [
        (&[0, 2][..], "shop/db (1 of its bundles):"),
        (&[1, 2], "shop/db (1 of its bundles):"),
        (&[2], "shop/db (2 of its bundles):"),
        (&[0, 1], "shop/db (its last bundle):"),
    ] {
        shop.create(&with_db(&shop, db(&shop, numbers))).refused(&["dropped-bundles"], &["leaves out release", lacks]);
    }
    // No annotation makes an incomplete chart complete.
    shop.annotate_profile("shop/db");
    shop.create(&with_db(&shop, db(&shop, &[2]))).refused(&["dropped-bundles"], &["2 of its bundles"]);
}

#[test]
fn an_index_that_cannot_be_read_is_no_reason_to_refuse() {
    let shop = Shop::new();
    let spec =
        |last: bool| json!({"helmReleaseNamespace": "shop", "helmReleaseName": "db", "isLastHelmReleaseBundle": last});
    let complete = |indexes: [Option<&str>; 2]| {
        let first = shop.indexed("first", indexes[0], spec(false));
        with_db(&shop, vec![first, shop.indexed("last", indexes[1], spec(true))])
    };
    for indexes in
        [[None, None], [None, Some("shop-db-charts-1")], [Some("shop-db-charts-0"), None], [Some("db"), Some("x-")]]
    {
        shop.create(&complete(indexes)).admitted();
    }
    shop.create(&complete([None, Some("shop-db-charts-2")])).refused(&["dropped-bundles"], &["(1 of its bundles)"]);
}

#[test]
fn the_hooks_of_an_uninstall_and_the_repository_do_not_count() {
    let shop = Shop::new();
    let hook = json!({"helmReleaseNamespace": "shop", "helmReleaseName": "db", "helmReleaseUninstall": true});
    let hook = shop.indexed("hook", Some("shop-db-charts-1"), hook);
    let gap = [db(&shop, &[0, 2]), vec![hook]].concat();
    shop.create(&with_db(&shop, gap)).refused(&["dropped-bundles"], &["(1 of its bundles)"]);
    let spec = json!({"helmReleaseNamespace": "shop", "helmReleaseName": "db", "isLastHelmReleaseBundle": true});
    let odd = shop.indexed("odd", Some("shop-db-my-repo-2-0"), spec);
    shop.create(&with_db(&shop, vec![odd])).admitted();
}
