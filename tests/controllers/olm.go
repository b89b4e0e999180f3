package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
)

const (
	// operatorController is the owner of OLM's records and the field manager of its objects.
	operatorController = "operator-controller"
	// olmMaxHistory is how many revisions OLM keeps.
	olmMaxHistory = 10
	// chunkSize is how much of a record OLM puts into one Secret.
	chunkSize = (1024 - 8) * 1024
	// hookTimeout is Helm's own, which OLM leaves as it is.
	hookTimeout = 5 * time.Minute
)

// olm is one reconcile of a ClusterExtension.
type olm struct {
	// The name of the ClusterExtension and of its release.
	extension string
	namespace string
	owner     owner

	chart  *chart.Chart
	values map[string]any
	helm   *action.Configuration
	report *report
}

func runOLM(ctx context.Context, args []string, report *report) (bool, error) {
	var d description
	o := olm{report: report}
	flags := newFlags("olm", &d)
	flags.StringVar(&o.extension, "extension", "", "the ClusterExtension's name, which is the release's")
	flags.StringVar(&o.namespace, "namespace", "", "where the objects are")
	system := flags.String("system-namespace", "olmv1-system", "where the records are")
	uid := flags.String("uid", "", "the ClusterExtension's, to own records and objects; default: nobody owns them")
	size := flags.Int("chunk-size", chunkSize, "how many bytes of a record go into one Secret")
	uninstall := flags.Bool("uninstall", false, "uninstall, which OLM leaves to the garbage collector")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if err := required(flags, "extension", "namespace", "system-namespace"); err != nil {
		return false, err
	}
	if *size <= 0 {
		return false, errors.New("--chunk-size is at least 1")
	}
	o.owner, o.values = owner{name: o.extension, uid: *uid}, d.values
	cluster, err := connect(d.kubeconfig, "", o.namespace, operatorController)
	if err != nil {
		return false, err
	}
	kube.ManagedFieldsManager = operatorController
	log := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	client := kube.New(cluster.getter)
	client.Log = log
	records := &chunked{
		secrets: cluster.client.CoreV1().Secrets(*system),
		owner:   o.owner,
		size:    *size,
	}
	o.helm = &action.Configuration{
		RESTClientGetter: cluster.getter,
		KubeClient:       client,
		Releases:         storage.Init(records),
		Log:              log,
	}
	if *uninstall {
		_, err := action.NewUninstall(o.helm).Run(o.extension)
		o.report.add(o.newest("uninstall"), err)
		return err == nil, nil
	}
	if err := required(flags, "chart"); err != nil {
		return false, err
	}
	if o.chart, err = loader.LoadDir(d.chart); err != nil {
		return false, err
	}
	return o.reconcile(ctx)
}

// reconcile installs, upgrades if what would be applied differs from what was, or else looks after the objects.
func (o *olm) reconcile(ctx context.Context) (bool, error) {
	latest, err := o.helm.Releases.Last(o.extension)
	switch {
	case errors.Is(err, driver.ErrReleaseNotFound):
		_, err := o.install().RunWithContext(ctx, o.chart, o.values)
		o.report.add(o.newest("install"), err)
		return err == nil, nil
	case err != nil:
		// A record that cannot be read blocks every reconcile.
		o.report.add(act{}, err)
		return false, nil
	}
	wanted := o.upgrade()
	// Asks the API server, writes nothing, and fails over a pending record: nobody takes that away.
	wanted.DryRun, wanted.DryRunOption = true, "server"
	desired, err := wanted.RunWithContext(ctx, o.extension, o.chart, o.values)
	if err != nil {
		o.report.add(o.newest("upgrade"), err)
		return false, nil
	}
	status := latest.Info.Status
	if desired.Manifest != latest.Manifest || status == release.StatusFailed || status == release.StatusSuperseded {
		// A failure is neither rolled back nor uninstalled: the next reconcile upgrades again.
		_, err := o.upgrade().RunWithContext(ctx, o.extension, o.chart, o.values)
		o.report.add(o.newest("upgrade"), err)
		return err == nil, nil
	}
	objects, err := o.putRight(ctx, latest)
	if err != nil || len(objects) > 0 {
		done := o.newest("correct-drift")
		done.Objects = objects
		o.report.add(done, err)
	}
	return err == nil, nil
}

func (o *olm) install() *action.Install {
	install := action.NewInstall(o.helm)
	install.ReleaseName = o.extension
	install.Namespace = o.namespace
	install.Timeout = hookTimeout
	install.DisableOpenAPIValidation = noSchemas
	install.Labels = o.bundle()
	install.PostRenderer = o.owner
	return install
}

func (o *olm) upgrade() *action.Upgrade {
	upgrade := action.NewUpgrade(o.helm)
	upgrade.Namespace = o.namespace
	upgrade.Timeout = hookTimeout
	upgrade.DisableOpenAPIValidation = noSchemas
	upgrade.MaxHistory = olmMaxHistory
	upgrade.ResetValues = true
	upgrade.Labels = o.bundle()
	upgrade.PostRenderer = o.owner
	return upgrade
}

// bundle is what OLM notes on a record about where it comes from.
func (o *olm) bundle() map[string]string {
	const group = "olm.operatorframework.io/"
	name, version := o.chart.Metadata.Name, o.chart.Metadata.Version
	return map[string]string{
		group + "package-name":     name,
		group + "bundle-name":      name + ".v" + version,
		group + "bundle-version":   version,
		group + "bundle-reference": "registry.invalid/" + name + ":" + version,
	}
}

// newest describes the newest record after an action.
func (o *olm) newest(after string) act {
	done := act{Action: after}
	if latest, err := o.helm.Releases.Last(o.extension); err == nil {
		done.Revision, done.Status = latest.Version, latest.Info.Status.String()
	}
	return done
}
