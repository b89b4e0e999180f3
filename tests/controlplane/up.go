package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// The API server is ready in about 4 seconds on two idle cores; the rest is for machines that are busy compiling.
	readyTimeout = 120 * time.Second
	// Between two looks at a component that is starting.
	pollPause = 50 * time.Millisecond
	// A port is picked, freed and bound again by the API server, so another process can take it in between.
	portAttempts = 5
	// How long a component may take to end after each signal.
	stopPatience = 3 * time.Second
	// How long an API server that is to be restarted may take to answer what it has begun.
	drainPatience = 30 * time.Second
	// Lines of a component's log that are shown when it fails.
	tailLines = 25
)

// person is somebody with a static token.
type person struct {
	name   string
	groups string
}

func (p person) token() string { return p.name + "token" }

var people = []person{
	{"alice", "devs"},
	{"bob", "devs"},
	{"ci-bot", "ci"},
	{"admin", "system:masters"},
}

// The identity of the controller manager on a real cluster; the API server grants it its roles by this name.
var manager = person{"system:kube-controller-manager", ""}

// controllersToRun are those that a Helm release meets. There is no scheduler, and pods.go stands in for the kubelet.
var controllersToRun = strings.Join([]string{
	"clusterrole-aggregation-controller", // fills the roles admin, edit and view
	"daemonset-controller",
	"deployment-controller",
	"garbage-collector-controller",
	"horizontal-pod-autoscaler-controller",
	"job-controller",
	"namespace-controller",
	"replicaset-controller",
	"serviceaccount-controller", // no pod is admitted in a namespace without its `default` account
	"statefulset-controller",
}, ",")

// ready is the one line on standard output.
type ready struct {
	Ready       bool              `json:"ready"`
	Server      string            `json:"server"`
	CA          string            `json:"ca"`
	Kubeconfigs map[string]string `json:"kubeconfigs"`
	AuditLog    string            `json:"auditLog,omitempty"`
	Etcd        string            `json:"etcd"`
	Pids        map[string]int    `json:"pids"`
}

// plane is everything that runs.
type plane struct {
	dir   string
	audit bool
	// The program of the API server, if not this one, and what it is told besides.
	apiserverProgram string
	apiserverExtra   []string

	// Where there are pods that somebody else runs.
	foreignPods string

	etcd, apiserver, manager *component
	// Starts the API server once more, where it was.
	again func(context.Context) error
	// Why the plane has to end: a component's exit.
	failed chan *component
}

func runUp(args []string) int {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	audit := flags.Bool("audit", false, "write every request and response body to DIR/audit.log")
	temporary := flags.Bool("temporary", false, "remove DIR at the end")
	apiserver := flags.String("kube-apiserver", "", "run this program as the API server")
	var extra []string
	flags.Func("apiserver-flag", "one more flag of the API server, such as --feature-gates=X=true; may be repeated", func(flag string) error {
		extra = append(extra, flag)
		return nil
	})
	foreignPods := flags.String("leave-pods-of", "", "leave the pods of this namespace to somebody else")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "controlplane up: one directory is needed")
		return 2
	}
	dir, err := filepath.Abs(flags.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane up:", err)
		return 2
	}
	if err := makeEmptyDir(dir); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane up:", err)
		return 2
	}
	if *temporary {
		defer os.RemoveAll(dir)
	}
	if *apiserver != "" {
		if _, err := os.Stat(*apiserver); err != nil {
			fmt.Fprintln(os.Stderr, "controlplane up: --kube-apiserver:", err)
			return 2
		}
	}
	// Children are killed by the kernel when the thread that started them ends, so it must not end before the process.
	runtime.LockOSThread()

	end, cancel := context.WithCancel(context.Background())
	commands := make(chan string)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			commands <- lines.Text()
		}
		cancel()
	}()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel()
	}()

	p := &plane{dir: dir, audit: *audit, apiserverProgram: *apiserver, apiserverExtra: extra, foreignPods: *foreignPods, failed: make(chan *component, 3)}
	defer p.stop()
	info, err := p.start(end)
	if errors.Is(err, context.Canceled) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane up:", err)
		return 1
	}
	line, err := json.Marshal(info)
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane up:", err)
		return 1
	}
	fmt.Println(string(line))

	for {
		select {
		case <-end.Done():
			return 0
		case c := <-p.failed:
			fmt.Fprintln(os.Stderr, "controlplane up:", c.ended())
			return 1
		case command := <-commands:
			err := p.obey(end, command)
			if errors.Is(err, context.Canceled) {
				return 0
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "controlplane up: %s: %v\n", command, err)
				return 1
			}
			fmt.Println(command)
		}
	}
}

// makeEmptyDir accepts a directory that is new or empty: old data would be another cluster's.
func makeEmptyDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty", dir)
	}
	return nil
}

func (p *plane) path(name string) string { return filepath.Join(p.dir, name) }

func (p *plane) start(end context.Context) (*ready, error) {
	// etcd needs none of the files, so it starts while they are made.
	etcdURL, err := p.startEtcd()
	if err != nil {
		return nil, err
	}
	if err := writeCredentials(p.dir); err != nil {
		return nil, err
	}
	if p.audit {
		if err := os.WriteFile(p.path("audit.yaml"), []byte(auditPolicy), 0o600); err != nil {
			return nil, err
		}
	}
	endpoint, err := etcdURL(end)
	if err != nil {
		return nil, err
	}
	server, client, err := p.startAPIServer(end, endpoint)
	if err != nil {
		return nil, err
	}
	kubeconfigs := map[string]string{}
	for _, who := range append(people, manager) {
		file := p.path(strings.TrimPrefix(who.name, "system:") + ".kubeconfig")
		if err := writeKubeconfig(file, server, p.path("ca.crt"), who); err != nil {
			return nil, err
		}
		if who != manager {
			kubeconfigs[who.name] = file
		}
	}
	if err := p.startManager(end, client, server); err != nil {
		return nil, err
	}
	log, err := p.podsLog()
	if err != nil {
		return nil, err
	}
	if err := runPods(end, server, p.path("ca.crt"), client.token, p.foreignPods, log); err != nil {
		return nil, err
	}
	info := &ready{Ready: true, Server: server, CA: p.path("ca.crt"), Kubeconfigs: kubeconfigs, Etcd: endpoint, Pids: map[string]int{
		"etcd":                    p.etcd.pid(),
		"kube-apiserver":          p.apiserver.pid(),
		"kube-controller-manager": p.manager.pid(),
	}}
	if p.audit {
		info.AuditLog = p.path("audit.log")
	}
	return info, nil
}

// startEtcd starts the member and returns a function that waits for its URL.
func (p *plane) startEtcd() (func(context.Context) (string, error), error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.etcd, err = p.launch("etcd", "", write, p.path("etcd"))
	write.Close()
	if err != nil {
		read.Close()
		return nil, err
	}
	lines := make(chan string, 1)
	go func() {
		defer read.Close()
		line, _ := bufio.NewReader(read).ReadString('\n')
		lines <- strings.TrimSpace(line)
	}()
	return func(end context.Context) (string, error) {
		select {
		case <-end.Done():
			return "", context.Canceled
		case <-time.After(readyTimeout):
			return "", p.etcd.late()
		case line := <-lines:
			if line == "" {
				<-p.etcd.done
				return "", p.etcd.ended()
			}
			return line, nil
		}
	}, nil
}

// startAPIServer returns the server's URL once /readyz answers.
func (p *plane) startAPIServer(end context.Context, etcd string) (string, *client, error) {
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return "", nil, err
		}
		server := fmt.Sprintf("https://127.0.0.1:%d", port)
		client, err := newClient(server, p.path("ca.crt"), "admintoken")
		if err != nil {
			return "", nil, err
		}
		p.again = func(end context.Context) error {
			c, err := p.launch("kube-apiserver", p.apiserverProgram, nil, p.apiserverFlags(etcd, port)...)
			if err != nil {
				return err
			}
			p.apiserver = c
			return c.wait(end, func() bool { return client.answers("/readyz") })
		}
		err = p.again(end)
		if err == nil {
			return server, client, nil
		}
		if attempt == portAttempts || p.apiserver == nil || !p.apiserver.logged("address already in use") {
			return "", nil, err
		}
		// The failure is answered here; nobody else has to hear of it.
		<-p.failed
	}
}

func (p *plane) apiserverFlags(etcd string, port int) []string {
	flags := []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + p.path("apiserver.crt"),
		"--tls-private-key-file=" + p.path("apiserver.key"),
		"--token-auth-file=" + p.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + p.path("sa.pub"),
		"--service-account-signing-key-file=" + p.path("sa.key"),
		// Wide enough for many tests with a Service each.
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		// Nothing routes to the Service `kubernetes`, and a machine without a network has no address for it.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--profiling=false",
	}
	if p.audit {
		flags = append(flags, "--audit-policy-file="+p.path("audit.yaml"), "--audit-log-path="+p.path("audit.log"))
	}
	return append(flags, p.apiserverExtra...)
}

// Bodies of writes only: reads are many and say nothing about admission.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// startManager returns when the controllers work: they have made the account that every namespace gets.
func (p *plane) startManager(end context.Context, client *client, server string) error {
	var err error
	p.manager, err = p.launch("kube-controller-manager", "", nil,
		"--kubeconfig="+p.path("kube-controller-manager.kubeconfig"),
		"--controllers="+controllersToRun,
		// As on a real cluster: every controller shows its own service account to the webhook.
		"--use-service-account-credentials=true",
		// There is only one.
		"--leader-elect=false",
		// Nobody asks it for health or metrics.
		"--secure-port=0",
		// The defaults (20, 30) would make tests wait for the client's own throttle.
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	return p.manager.wait(end, func() bool {
		return client.answers("/api/v1/namespaces/default/serviceaccounts/default")
	})
}

// obey does what a line of standard input says.
func (p *plane) obey(end context.Context, command string) error {
	switch command {
	case "restart kube-apiserver":
		p.apiserver.end(syscall.SIGTERM, drainPatience)
	case "kill kube-apiserver":
		p.apiserver.end(syscall.SIGKILL, stopPatience)
	default:
		return errors.New("no such command")
	}
	return p.again(end)
}

// stop ends the components in the order in which each can still reach what it needs: an API server whose etcd is gone
// does not end by SIGTERM.
func (p *plane) stop() {
	for _, c := range []*component{p.manager, p.apiserver, p.etcd} {
		if c != nil {
			c.stop()
		}
	}
}

// freePort returns a port that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// client asks the API server as admin.
type client struct {
	http   *http.Client
	server string
	token  string
}

func newClient(server, ca, token string) (*client, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", ca)
	}
	return &client{
		http: &http.Client{
			Timeout:   5 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		},
		server: server,
		token:  token,
	}, nil
}

// answers says whether a GET of the path gives 200.
func (c *client) answers(path string) bool {
	request, err := http.NewRequest(http.MethodGet, c.server+path, nil)
	if err != nil {
		return false
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode == http.StatusOK
}
