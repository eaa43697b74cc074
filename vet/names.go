package vet

import (
	"go/types"
	"strings"
)

const (
	workflowPath = "github.com/droverhq/drover/decider/workflow"
	clientPath   = "github.com/droverhq/drover"
)

// roots are what workflows are built on; these packages and those below them are trusted. logrus is
// that of workflow.Log, which is silent in replays.
var roots = []string{
	workflowPath, "github.com/droverhq/drover/contract", "github.com/sirupsen/logrus",
}

// The ways out.
const (
	useNow      = "use workflow.Now(ctx)"
	useSleep    = "use workflow.Sleep(ctx, d)"
	useTimer    = "use workflow.Timer(ctx, d)"
	useRand     = "use workflow.Rand(ctx)"
	useOnce     = "use workflow.Once, which records what it returns"
	useUUID     = "use workflow.UUID(ctx)"
	useActivity = "let an activity do it, or workflow.Do"
	useGo       = "use workflow.Go"
	useFutures  = "wait for futures of workflow.Go, or use workflow.WaitFor"
	noLock      = "one coroutine of a run runs at a time, so no lock is needed; " +
		"workflow.WaitFor waits for others"
	useChannels = "use workflow.Signals, workflow.NewChannel and workflow.Select, or a variable and " +
		"workflow.WaitFor"
	useInput   = "hand it over in the input, or read it in an activity or in workflow.Do"
	useContext = "nothing native waits for a workflow: hand on its workflow.Context, " +
		"and let activities do what needs a context.Context"
	noThreads = "coroutines change their threads: leave it out"
	askByCtx  = "a workflow asks by its context: workflow.Call, Start and others"
	sortKeys  = "range over slices.Sorted(maps.Keys(m))"
	sortFirst = "use slices.Sorted(maps.Keys(m)), or sort before anything depends on it"
	noGlobals = "other runs and replays see it, and it is gone with the process: " +
		"keep it in a variable of the workflow"
	readOnly   = "it may only read, since it is called again and again"
	noRecover  = "a panic is a mistake of the program; the run waits until it is mended: leave it out"
	keepFuture = "keep it and Get it, or nobody learns of its error; if nobody need, write _ ="
	returnIt   = "return what it returns"
)

// names says of functions, methods (Type.Method) and variables of a package what to use instead. A
// name "*" is every function that is not listed, "Type.*" every method of a type; "" is trusted.
var names = map[string]map[string]string{
	"time": {
		"Now": useNow, "Since": useNow, "Until": useNow, "Sleep": useSleep, "After": useTimer,
		"AfterFunc": useTimer, "NewTimer": useTimer, "NewTicker": useTimer, "Tick": useTimer,
	},
	"math/rand": {
		"*": useRand, "New": "", "NewSource": "", "NewZipf": "",
	},
	"math/rand/v2": {
		"*": useRand, "New": "", "NewPCG": "", "NewChaCha8": "", "NewZipf": "",
	},
	"crypto/rand":  {"*": useOnce, "Reader": useOnce},
	"hash/maphash": {"MakeSeed": useOnce, "Hash.Sum64": useOnce},
	"context": {
		"Background": useContext, "TODO": useContext,
	},
	"sync": {
		"WaitGroup.Wait": useFutures, "WaitGroup.Go": useGo, "Cond.Wait": useFutures,
	},
	"runtime": {
		"LockOSThread": noThreads, "UnlockOSThread": noThreads, "Gosched": noThreads,
		"Goexit": "return an error", "NumGoroutine": useInput, "NumCPU": useInput,
		"GOMAXPROCS": useInput,
	},
	"iter": {"Pull": "range over it", "Pull2": "range over it"},
	"os": {
		"*": useActivity, "Args": useInput, "Stdin": useInput, "File.*": useActivity,
		"Getenv": useInput, "LookupEnv": useInput, "Environ": useInput, "ExpandEnv": useInput,
		"Hostname": useInput, "Getpid": useInput,
		"IsExist": "", "IsNotExist": "", "IsPermission": "", "IsTimeout": "", "IsPathSeparator": "",
		"Expand": "",
	},
	"os/exec":   {"*": useActivity, "Cmd.*": useActivity},
	"os/signal": {"*": useActivity},
	"os/user":   {"*": useActivity},
	"io/ioutil": {"*": useActivity, "ReadAll": "", "NopCloser": ""},
	"path/filepath": {
		"Abs": useActivity, "EvalSymlinks": useActivity, "Glob": useActivity, "Walk": useActivity,
		"WalkDir": useActivity,
	},
	"plugin":  {"*": useActivity},
	"syscall": {"*": useActivity},
	"net": {
		"*": useActivity, "CIDRMask": "", "IPv4": "", "IPv4Mask": "", "JoinHostPort": "",
		"ParseCIDR": "", "ParseIP": "", "ParseMAC": "", "SplitHostPort": "",
		"Dialer.*": useActivity, "Resolver.*": useActivity, "ListenConfig.*": useActivity,
	},
	"net/http": {
		"Get": useActivity, "Head": useActivity, "Post": useActivity, "PostForm": useActivity,
		"ListenAndServe": useActivity, "ListenAndServeTLS": useActivity, "Serve": useActivity,
		"ServeTLS": useActivity, "Client.*": useActivity, "Transport.*": useActivity,
		"Server.*": useActivity,
	},
	"net/rpc":  {"*": useActivity, "Client.*": useActivity},
	"net/smtp": {"*": useActivity, "Client.*": useActivity},
	"database/sql": {
		"Open": useActivity, "OpenDB": useActivity, "DB.*": useActivity, "Conn.*": useActivity,
		"Tx.*": useActivity, "Stmt.*": useActivity, "Rows.*": useActivity, "Row.*": useActivity,
	},

	"github.com/google/uuid": {
		"New": useUUID, "NewString": useUUID, "NewRandom": useUUID, "NewUUID": useUUID,
		"NewV6": useUUID, "NewV7": useUUID,
	},
	"github.com/gofrs/uuid/v5": {
		"NewV1": useUUID, "NewV4": useUUID, "NewV6": useUUID, "NewV7": useUUID,
	},
	"github.com/oklog/ulid/v2":   {"Make": useUUID, "Now": useNow},
	"github.com/rs/xid":          {"New": useUUID},
	"github.com/segmentio/ksuid": {"New": useUUID},
	"github.com/nats-io/nats.go": {"Connect": useActivity, "Conn.*": useActivity},
	clientPath:                   {"*": askByCtx, "Client.*": askByCtx, "Run.*": askByCtx},
}

// locks only matter in workflow code itself: elsewhere they are held for a moment, by others.
var locks = map[string]bool{
	"Mutex.Lock": true, "RWMutex.Lock": true, "RWMutex.RLock": true, "Once.Do": true,
}

// reads are what of package workflow asks for nothing.
var reads = map[string]bool{
	"Now": true, "Log": true, "ContinueAsNewSuggested": true, "Future.Ready": true, "Channel.Len": true,
	"Context.Err": true, "Context.Cause": true, "Context.Value": true, "Context.Info": true,
}

// standard are the first parts of the paths of the standard library.
var standard = setOf(`archive bufio builtin bytes cmd cmp compress container context crypto database
	debug embed encoding errors expvar flag fmt go hash html image index internal io iter log maps
	math mime net os path plugin reflect regexp runtime simd slices sort strconv strings structs sync
	syscall testing text time unicode unique unsafe vendor weak`)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// nameOf is the name of what a package declares: of a method with its type, as in Type.Method.
func nameOf(obj types.Object) string {
	fn, ok := obj.(*types.Func)
	if !ok || fn.Signature().Recv() == nil {
		return obj.Name()
	}
	t := types.Unalias(fn.Signature().Recv().Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name() + "." + obj.Name()
	}
	return obj.Name()
}

// listed returns what to use instead of something; "" if it may be used.
func listed(obj types.Object) string {
	list := names[obj.Pkg().Path()]
	if list == nil {
		return ""
	}
	name := nameOf(obj)
	if use, ok := list[name]; ok {
		return use
	}
	if typ, _, ok := strings.Cut(name, "."); ok {
		return list[typ+".*"]
	}
	if _, ok := obj.(*types.Func); ok {
		return list["*"]
	}
	return ""
}
