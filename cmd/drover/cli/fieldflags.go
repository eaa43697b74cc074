package cli

import (
	"errors"
	"strings"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// fieldFlags are the flags after the fields that packages of the server complain of, and what they
// say of values that flags have not, or mean otherwise: most refuse 0, and no port is a free one.
var fieldFlags = strings.NewReplacer(
	"Cluster.Name",
	"--cluster-name",
	"Cluster.Routes",
	"--routes",
	"Cluster.Host",
	"--cluster-host",
	"Cluster.Port",
	"--cluster-port",
	"Cluster.Advertise",
	"--cluster-advertise",
	"Cluster.Size",
	"--cluster-size",
	"Cluster.User",
	"--cluster-user",
	"Cluster.Password",
	"--cluster-password",
	"without Cluster",
	"without --cluster-name",
	"ServerName",
	"--node",
	"StoreDir",
	"--store",
	"ClaimTTL is",
	"--claim-ttl is",
	"Roles names",
	"--roles names",
	"AfterCrash is",
	"--after-crash is",
	"needs Node",
	"needs --node",
	"MaxEvents is",
	"--max-events is",
	"DrainTimeout is",
	"--drain-timeout is",
	"Options.Node",
	"--node",
	"Partitions is",
	"--partitions is",
	"Replicas is",
	"--replicas is",
	"MaxBytes is",
	"--max-bytes is",
	"Compression is",
	"--compression is",
	"Description has",
	"--description has",
	"FlowRetention:",
	"--retention-flows:",
	"Retention:",
	"--retention:",
	"Port is",
	"--port is",
	"another Port",
	"another --port",
	"a Port above",
	"a --port above",
	"Host must be",
	"--host must be",
	"MaxPayload is",
	"--max-payload is",
	"Profile is",
	"--profile is",
	"use ProfileDev",
	"use --profile dev",
	", -1 for a random one or 0 for 4222",
	", or 0 for a free one",
	"-1 for no limit",
	"NONE for no limit",
	"or 0 for",
	"or leave it out for",
)

// flagError is an error whose text speaks of flags instead of fields.
type flagError struct {
	text string
	err  error
}

func (e *flagError) Error() string { return e.text }

func (e *flagError) Unwrap() error { return e.err }

// InFlags makes an error about options speak the language of the command line.
func InFlags(err error) error {
	if err == nil {
		return nil
	}
	if text := fieldFlags.Replace(err.Error()); text != err.Error() {
		return &flagError{text, err}
	}
	return err
}

// RefusalInFlags is InFlags for a refusal by a server.
func RefusalInFlags(err error) error {
	e, ok := errors.AsType[*drover.Error](err)
	refusal, refused := errors.AsType[*schemas.Error](err)
	if !ok || !refused || refusal.Code != schemas.CodeInvalid {
		return err
	}
	told, about := *e, *refusal
	about.Message = fieldFlags.Replace(refusal.Message)
	told.Err = &about
	return &told
}
