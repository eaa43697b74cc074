package broker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// large is a JSON string of n bytes.
func large(n int) schemas.Payload {
	p := bytes.Repeat([]byte("drover! "), n/8+1)[:n]
	p[0], p[n-1] = '"', '"'
	return p
}

func digestOf(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

// streams tells the last sequence of every stream there is.
func (f *fleet) streams() map[string]uint64 {
	f.t.Helper()
	all := map[string]uint64{}
	list := f.js.ListStreams(f.t.Context())
	for s := range list.Info() {
		all[s.Config.Name] = s.State.LastSeq
	}
	if err := list.Err(); err != nil {
		f.t.Fatal(err)
	}
	return all
}

// objects returns the names of all objects, as any NATS client sees them.
func (f *fleet) objects() []string {
	f.t.Helper()
	store, err := f.js.ObjectStore(f.t.Context(), ns.StorePayloads())
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil
	}
	if err != nil {
		f.t.Fatal(err)
	}
	infos, err := store.List(f.t.Context())
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		f.t.Fatal(err)
	}
	var names []string
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return slices.Sorted(slices.Values(names))
}

// object fetches one as any NATS client does.
func (f *fleet) object(name string) []byte {
	f.t.Helper()
	store, err := f.js.ObjectStore(f.t.Context(), ns.StorePayloads())
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := store.Get(f.t.Context(), name)
	if err != nil {
		f.t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

// messages is how many messages the object store has.
func (f *fleet) messages() uint64 {
	f.t.Helper()
	s, err := f.js.Stream(f.t.Context(), ns.StreamPayloads())
	if err != nil {
		f.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// wantSmall checks that no record and no task holds what should be in the store.
func (f *fleet) wantSmall() {
	f.t.Helper()
	for p := range f.partitions {
		err := f.post.Scan(f.t.Context(), ns.StreamHistory(p), natsconn.ReadOptions{}, func(s natsconn.Stored) error {
			if len(s.Data) >= 10<<10 {
				f.t.Errorf("record %d of partition %d has %d bytes", s.Seq, p, len(s.Data))
			}
			return nil
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

// wantRef checks that p stands for content, and that the content is there.
func (f *fleet) wantRef(p, content schemas.Payload) *schemas.PayloadRef {
	f.t.Helper()
	ref, ok := p.Ref()
	if !ok {
		f.t.Fatalf("got %.60q of %d bytes, want a reference", p, len(p))
	}
	if ref.Size != int64(len(content)) || ref.Digest != digestOf(content) {
		f.t.Fatalf("got %+v, want the size %d and the digest of the content", ref, len(content))
	}
	got, err := payloads.NewClient(f.post, ns, time.Minute).Resolve(f.t.Context(), p)
	if err != nil || !bytes.Equal(got, content) {
		f.t.Fatalf("got %d bytes, %v; want the content", len(got), err)
	}
	if !bytes.Equal(f.object(ref.Object), content) {
		f.t.Fatal("a NATS client reads something else")
	}
	return ref
}

func TestUploadAndDownload(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.node("b", nil)
		f.api("list", `{}`)
		c := payloads.NewClient(f.post, ns, time.Minute)
		for _, n := range []int{2, 128 << 10, 128<<10 + 1, 300 << 10, 1<<20 + 17, 5 << 20} {
			content := large(n)
			ref, err := c.Upload(t.Context(), content)
			if err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			f.wantRef(schemas.RefPayload(ref), content)
		}
		for n, spilled := range map[int]bool{2: false, schemas.PayloadThreshold: false, schemas.PayloadThreshold + 1: true} {
			p, err := c.Spill(t.Context(), large(n))
			if _, ok := p.Ref(); err != nil || ok != spilled {
				t.Fatalf("%d bytes: got %d, %v; want a reference: %v", n, len(p), err, spilled)
			}
		}
	})
}

func TestTooLargeIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.api("list", `{}`)
		time.Sleep(time.Minute)
		before := f.streams()
		for body, want := range map[string]schemas.Error{
			fmt.Sprintf(`{"size":%d,"digest":"%s"}`, 64<<20+1, digestOf(nil)): {Code: schemas.CodeTooLarge, Field: "size"},
			`{"size":0,"digest":"` + digestOf(nil) + `"}`:                     {Code: schemas.CodeInvalid, Field: "size"},
			`{"size":5,"digest":"abc"}`:                                       {Code: schemas.CodeInvalid, Field: "digest"},
		} {
			var a schemas.UploadResponse
			if err := json.Unmarshal(f.request(ns.API("upload"), body), &a); err != nil || a.Error == nil {
				t.Fatalf("got %+v, %v; want a refusal", a, err)
			}
			if a.Error.Code != want.Code || a.Error.Field != want.Field {
				t.Fatalf("%s: got %+v, want code %s in field %s", body, a.Error, want.Code, want.Field)
			}
			if want.Code == schemas.CodeTooLarge && a.Error.Hint == "" {
				t.Fatal("the refusal shows no way out")
			}
		}
		after := f.streams()
		// Claims are renewed all the time.
		for _, m := range []map[string]uint64{before, after} {
			maps.DeleteFunc(m, func(name string, _ uint64) bool { return strings.HasPrefix(name, "KV_") })
		}
		if !maps.Equal(before, after) {
			t.Fatalf("got %v, want %v", after, before)
		}
	})
}

// plainly is the upload that the comment of schemas.PayloadRef describes to other languages.
func (f *fleet) plainly(content []byte, digest string) (last schemas.UploadResponse, subj string) {
	f.t.Helper()
	if err := json.Unmarshal(f.request(ns.API("upload"), fmt.Sprintf(`{"size":%d,"digest":"%s"}`, len(content), digest)), &last); err != nil || last.Error != nil {
		f.t.Fatalf("got %+v, %v", last, err)
	}
	subj = last.Subject
	offset := 0
	for chunk := range slices.Chunk(content, last.ChunkBytes) {
		last = schemas.UploadResponse{}
		if err := json.Unmarshal(f.request(fmt.Sprintf("%s.%d", subj, offset), string(chunk)), &last); err != nil {
			f.t.Fatal(err)
		}
		offset += len(chunk)
	}
	return last, subj
}

func TestUploadByPlainRequests(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.api("list", `{}`)
		content := large(300 << 10)
		a, subj := f.plainly(content, digestOf(content))
		if a.Ref == nil || a.Offset != int64(len(content)) {
			t.Fatalf("got %+v, want a reference", a)
		}
		// The answer to the last chunk may be lost: who sends it again gets it.
		var again schemas.UploadResponse
		if err := json.Unmarshal(f.request(fmt.Sprintf("%s.%d", subj, 256<<10), string(content[256<<10:])), &again); err != nil || again.Ref == nil || *again.Ref != *a.Ref {
			t.Fatalf("got %+v, %v; want %+v", again, err, a)
		}
		ref, err := json.Marshal(a.Ref)
		if err != nil {
			t.Fatal(err)
		}
		f.decider("order", func(task *decisionTask) string {
			input, err := json.Marshal(task.Events[0].Attributes["input"])
			if err != nil || task.Events[0].Type != "WorkflowStarted" {
				t.Errorf("got %v, %v", task.Events[0], err)
			}
			return `[{"type":"CompleteWorkflow","attributes":{"result":` + string(input) + `}}]`
		})
		f.start(`{"workflowId":"w","type":"order","input":{"$ref":` + string(ref) + `}}`)
		f.completes("w")
		result, _ := f.api("result", `{"workflowId":"w"}`)["result"].(map[string]any)["$ref"].(map[string]any)
		if result["object"] != a.Ref.Object {
			t.Fatalf("got %v, want a reference to %s", result, a.Ref.Object)
		}
		time.Sleep(time.Minute) // the upload is forgotten, and what it has brought is not
		var got []byte
		for cursor := ""; ; {
			piece := f.api("download", fmt.Sprintf(`{"object":%q,"cursor":%q,"limit":1}`, a.Ref.Object, cursor))
			data, err := base64.StdEncoding.DecodeString(fmt.Sprint(piece["data"]))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, data...)
			if cursor, _ = piece["next"].(string); cursor == "" {
				break
			}
		}
		if !bytes.Equal(got, content) {
			t.Fatalf("got %d bytes, want the content", len(got))
		}
		f.wantSmall()
	})
}

func TestUploadOfAnotherDigestIsRefused(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.api("list", `{}`)
		a, _ := f.plainly(large(300<<10), digestOf(nil))
		if a.Error == nil || a.Error.Code != schemas.CodeInvalid || a.Error.Field != "digest" || a.Ref != nil {
			t.Fatalf("got %+v, want it refused", a)
		}
		if n := f.messages(); n != 0 {
			t.Fatalf("%d messages are left over", n)
		}
	})
}

func TestUploadCutInTheMiddle(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.api("list", `{}`)
		content := large(300 << 10)
		var a schemas.UploadResponse
		if err := json.Unmarshal(f.request(ns.API("upload"), fmt.Sprintf(`{"size":%d,"digest":"%s"}`, len(content), digestOf(content))), &a); err != nil {
			t.Fatal(err)
		}
		refused := func(offset int, data []byte, want schemas.Code) {
			t.Helper()
			var got schemas.UploadResponse
			if err := json.Unmarshal(f.request(fmt.Sprintf("%s.%d", a.Subject, offset), string(data)), &got); err != nil || got.Error == nil || got.Error.Code != want {
				t.Fatalf("got %+v, %v; want %s", got.Error, err, want)
			}
		}
		refused(5, content[5:10], schemas.CodeConflict)
		refused(0, content[:200<<10], schemas.CodeTooLarge)
		f.request(a.Subject+".0", string(content[:128<<10]))
		refused(128<<10, nil, schemas.CodeInvalid)
		if n := f.messages(); n != 1 {
			t.Fatalf("got %d messages, want the chunk", n)
		}
		time.Sleep(29 * time.Second)
		var again schemas.UploadResponse // a repeat, whose answer was lost, is taken, and counts as a sign of life
		if err := json.Unmarshal(f.request(a.Subject+".0", string(content[:128<<10])), &again); err != nil || again.Error != nil || again.Offset != 128<<10 {
			t.Fatalf("got %+v, %v; want it to go on at %d", again, err, 128<<10)
		}
		time.Sleep(31 * time.Second)
		if n, objects := f.messages(), f.objects(); n != 0 || len(objects) != 0 {
			t.Fatalf("got %d messages and objects %v, want nothing left", n, objects)
		}
		refused(128<<10, content[128<<10:256<<10], schemas.CodeNotFound)
		ref, err := payloads.NewClient(f.post, ns, time.Minute).Upload(t.Context(), content)
		if err != nil {
			t.Fatal(err)
		}
		f.wantRef(schemas.RefPayload(ref), content)
	})
}

// The broker that takes an upload dies at its third chunk: the client begins anew at another, and one object is there.
func TestUploadOutlivesItsBroker(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nth(3, "$O.", cutwire.CutBefore))
		f.api("list", `{}`)
		content := large(1 << 20)
		done := make(chan error, 1)
		var ref *schemas.PayloadRef
		go func() {
			var err error
			ref, err = payloads.NewClient(f.post, ns, time.Minute).Upload(context.Background(), content)
			done <- err
		}()
		a.waitKilled()
		f.node("b", nil)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		f.wantRef(schemas.RefPayload(ref), content)
		if got := f.objects(); len(got) != 1 {
			t.Fatalf("got %v, want one object", got)
		}
	})
}

func TestUploadsAreBounded(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.api("list", `{}`)
		begin := func() (a schemas.UploadResponse) {
			if err := json.Unmarshal(f.request(ns.API("upload"), `{"size":5,"digest":"`+digestOf([]byte("hello"))+`"}`), &a); err != nil {
				t.Fatal(err)
			}
			return a
		}
		first := begin()
		for range 63 {
			if a := begin(); a.Error != nil {
				t.Fatal(a.Error)
			}
		}
		if a := begin(); a.Error == nil || a.Error.Code != schemas.CodeUnavailable {
			t.Fatalf("got %+v, want it told to come back", a)
		}
		f.request(first.Subject+".0", "hello")
		if a := begin(); a.Error != nil {
			t.Fatalf("got %v, want room when one has finished", a.Error)
		}
		time.Sleep(31 * time.Second)
		for range 64 {
			if a := begin(); a.Error != nil {
				t.Fatal(a.Error)
			}
		}
		if a := begin(); a.Error == nil || a.Error.Code != schemas.CodeUnavailable {
			t.Fatalf("got %+v after one that had finished and is forgotten, want it told to come back", a)
		}
	})
}
