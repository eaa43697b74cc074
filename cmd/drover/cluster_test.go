package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/server"
)

const clusterRoutes = "a:6222,b:6222,c:6222"

// What makes no sense is refused before anything listens, with the flag named.
func TestClusterUsage(t *testing.T) {
	t.Setenv("NATS_URL", "")
	t.Chdir(t.TempDir())
	for _, tc := range []struct {
		args string
		want []string
	}{
		{"--routes " + clusterRoutes, []string{"--routes is given, which needs --cluster-name"}},
		{"--cluster-size 3", []string{"--cluster-size is given, which needs --cluster-name"}},
		{"--profile cluster", []string{"--profile is cluster, which needs --cluster-name and --routes"}},
		{"--replicas 3", []string{"--replicas is given, which needs --cluster-name, --nats or --context"}},
		{"--cluster-name c", []string{"--cluster-name is given without --routes"}},
		{"--cluster-name=two\twords --routes " + clusterRoutes, []string{"--cluster-name is", "without spaces"}},
		{"--cluster-name c/d --routes " + clusterRoutes, []string{"--cluster-name is", "letters"}},
		{"--cluster-name c --memory --routes " + clusterRoutes, []string{"--memory and --cluster-name exclude each other", "--store"}},
		{"--cluster-name c --profile single --routes " + clusterRoutes, []string{"--profile is single", "leave it out"}},
		{"--cluster-name c --profile dev --routes " + clusterRoutes, []string{"--profile is dev", "leave it out"}},
		{"--cluster-name c --replicas 5 --routes " + clusterRoutes, []string{"--replicas is 5", "--cluster-size 3"}},
		{"--cluster-name c --cluster-size 2 --routes " + clusterRoutes, []string{"--cluster-size is 2", "3 to 7"}},
		{"--cluster-name c --routes a:6222", []string{"--routes names 1 nodes of 3"}},
		{"--cluster-name c --routes a,b:6222", []string{`--routes has "a"`, "no port"}},
		{"--cluster-name c --cluster-port 0 --cluster-host h:1 --routes " + clusterRoutes, []string{"--cluster-host is", "without port"}},
		{"--cluster-name c --cluster-user u --routes " + clusterRoutes, []string{"--cluster-user and --cluster-password"}},
		{"--cluster-name c --cluster-advertise h --routes " + clusterRoutes, []string{"--cluster-advertise is", "host:port"}},
		{"--cluster-name c --node two/words --routes " + clusterRoutes, []string{"--node is", "letters"}},
		{"--cluster-name c --nats nats://h --routes " + clusterRoutes, []string{"--cluster-name is given, which goes with an embedded server"}},
	} {
		var stdout, stderr bytes.Buffer
		code := execute(context.Background(), append([]string{"server"}, strings.Split(tc.args, " ")...), strings.NewReader(""), &stdout, &stderr)
		if code != cli.ExitUsage || stdout.Len() > 0 {
			t.Errorf("server %s: got code %d, %s, want %d and nothing on stdout", tc.args, code, stdout.String(), cli.ExitUsage)
		}
		for _, want := range tc.want {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("server %s: got %q, want it to say %q", tc.args, stderr.String(), want)
			}
		}
	}
}

// The store of a single server is refused with the flags that are at fault, not with the names of fields.
func TestStoreOfASingleServerIsNoNode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := serving(t, server.Options{Embedded: embedded.Options{StoreDir: dir, Port: -1, Profile: embedded.ProfileDev}})
	s.end(t)
	var stdout, stderr bytes.Buffer
	args := fmt.Sprintf("server --port -1 --store %s --cluster-name c --cluster-port 29222 --routes %s", dir, clusterRoutes)
	code := execute(context.Background(), strings.Split(args, " "), strings.NewReader(""), &stdout, &stderr)
	if code != cli.ExitFailed || !strings.Contains(stderr.String(), "which cluster c would delete") ||
		!strings.Contains(stderr.String(), "without --cluster-name") || !strings.Contains(stderr.String(), "empty --store") {
		t.Fatalf("got code %d, %s, want the store refused", code, stderr.String())
	}
}
