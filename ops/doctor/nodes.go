package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/schemas"
)

// neededRoles are those that somebody must have, or a part of the work stands still.
var neededRoles = []string{"broker", "timers", "ops"}

// external is the profile of a node beside a NATS elsewhere.
const external = "external"

// judgeNodes looks at all of them together.
func judgeNodes(all []nodes.Info, namespace string, alive func(*nodes.Info) bool) []Finding {
	var found []Finding
	roles, versions, live := map[string]bool{}, map[string]bool{}, []string{}
	for i := range all {
		n := &all[i]
		switch {
		case n.Malformed:
			found = append(found, Finding{
				Warn, checkNodes, fmt.Sprintf("the record %s cannot be read", n.Key),
				fmt.Sprintf("\"drover node remove %s\"", n.Key),
			})
			continue
		case !alive(n):
			found = append(found, Finding{
				Warn, checkNodes,
				fmt.Sprintf("%s does not respond since %s",
					n.Node, n.HeardAt().UTC().Format(time.RFC3339)),
				fmt.Sprintf("start it again; if it will not come back: \"drover node remove %s\"",
					n.Node),
			})
			continue
		case n.Status == schemas.NodeUnexpectedShutdown:
			found = append(found, Finding{
				Bad, checkNodes,
				fmt.Sprintf("%s did not end properly, and waits for an operator", n.Node),
				fmt.Sprintf("look at what happened, then \"drover node ack %s\"", n.Node),
			})
			continue
		}
		live = append(live, n.Node)
		versions[n.Version] = true
		if n.Namespace == namespace || slices.Contains(n.Namespaces, namespace) {
			for _, r := range n.Roles {
				roles[r] = true
			}
		}
	}
	var missing []string
	for _, r := range neededRoles {
		if !roles[r] {
			missing = append(missing, r)
		}
	}
	switch {
	case len(live) == 0 && Worst(found) == Bad: // they wait for an operator, which is said
	case len(live) == 0:
		found = append(found, Finding{Bad, checkNodes, noServer, "start \"drover server\""})
	case len(missing) > 0:
		found = append(found, Finding{
			Bad, checkNodes,
			fmt.Sprintf("no server has the role %s for the namespace %s",
				strings.Join(missing, ", "), namespace),
			"start \"drover server\" with it: --roles " + strings.Join(missing, ","),
		})
	case len(versions) > 1:
		found = append(found, Finding{
			Warn, checkNodes, "servers of several versions: " + keys(versions), "finish the update",
		})
	}
	if len(found) == 0 {
		found = append(found, Finding{
			Status: OK, Check: checkNodes,
			Found: fmt.Sprintf("%d: %s", len(live), strings.Join(live, ", ")),
		})
	}
	return found
}

// judgeNode looks at one that is alive: clock, profile, sync, disk.
func judgeNode(n *nodes.Info) []Finding {
	// The heartbeat travels, so a clock that is right seems to be a little behind.
	found := []Finding{judgeSkew(n.Node, n.ClockOffset(), 100*time.Millisecond), judgeProfile(n)}
	if n.Profile != external && n.Sync != "" {
		found = append(found, judgeSyncMode(n))
	}
	if n.DiskTotal > 0 {
		found = append(found, judgeDisk(n))
	}
	return found
}

func judgeProfile(n *nodes.Info) Finding {
	found := fmt.Sprintf("%s: %s", n.Node, n.Profile)
	if n.Profile == "dev" {
		return Finding{
			Warn,
			checkProfile,
			found,
			"it is for development: a power cut loses what was acknowledged last; use --profile single, or a cluster",
		}
	}
	return Finding{Status: OK, Check: checkProfile, Found: found}
}

func judgeSyncMode(n *nodes.Info) Finding {
	if n.Sync == "always" || n.Profile == "dev" { // dev was warned of
		return Finding{Status: OK, Check: checkSync, Found: fmt.Sprintf("%s: %s", n.Node, n.Sync)}
	}
	return Finding{
		Warn, checkSync, fmt.Sprintf("%s syncs its files every %s", n.Node, n.Sync),
		"a power cut of all servers at once loses what was acknowledged since; the option \"always\" loses nothing",
	}
}

func judgeDisk(n *nodes.Info) Finding {
	share := float64(n.DiskFree) / float64(n.DiskTotal)
	f := Finding{
		Status: OK, Check: checkDisk,
		Found: fmt.Sprintf("%s: %s of %s are free", n.Node, size(int64(n.DiskFree)),
			size(int64(n.DiskTotal))),
	}
	switch {
	case share < diskBad || n.DiskFree < diskBadBytes:
		f.Status = Bad
	case share < diskWarn || n.DiskFree < diskWarnBytes:
		f.Status = Warn
	}
	if f.Status != OK {
		f.Change = "make room, or move the store; on a full disk nothing is accepted any more"
	}
	status := judgeInodes(n)
	if status == OK {
		return f
	}
	const change = "remove files there, or move the store to a file system that can hold more: " +
		"without a free inode no file can be made"
	f.Found += fmt.Sprintf(", and %d of %d inodes", n.InodesFree, n.InodesTotal)
	if f.Status == OK || f.Status == Warn && status == Bad {
		f.Status, f.Change = status, change
	} else {
		f.Change += "; " + change
	}
	return f
}

// judgeInodes is about the number of files that a file system can hold; some have none.
func judgeInodes(n *nodes.Info) Status {
	share := float64(n.InodesFree) / float64(n.InodesTotal)
	switch {
	case n.InodesTotal == 0:
		return OK
	case share < diskBad || n.InodesFree < inodesBad:
		return Bad
	case share < diskWarn || n.InodesFree < inodesWarn:
		return Warn
	}
	return OK
}

const noServer = "no server is running"

// answered corrects what the records of the nodes say: a server that cannot write its record runs
// all the same.
func (e *examination) answered() {
	for i := range e.findings {
		if f := &e.findings[i]; f.Check == checkNodes && f.Found == noServer {
			f.Found, f.Change = "a server runs and cannot write that it does", "see the check "+checkLists
		}
	}
}
