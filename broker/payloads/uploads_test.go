package payloads_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/schemas"
)

// uploads are those of a broker into the shelf.
func (s *shelf) uploads() *payloads.Uploads {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	u := payloads.NewUploads(s.Store, 1<<20, log)
	s.t.Cleanup(u.Close)
	return u
}

// begin opens an upload of some content, which is not damaged on its way, and returns where its chunks go.
func (s *shelf) begin(u *payloads.Uploads, content string) (subj string) {
	s.t.Helper()
	a, refused := beginOf(u, content)
	if refused != nil {
		s.t.Fatal(refused)
	}
	return a.Subject
}

func beginOf(u *payloads.Uploads, content string) (*schemas.UploadResponse, *schemas.Error) {
	sum := sha256.Sum256([]byte(content))
	return u.Begin(&schemas.UploadRequest{Size: int64(len(content)), Digest: hex.EncodeToString(sum[:])})
}

// chunk sends one and wants it taken, or refused with a code.
func (s *shelf) chunk(u *payloads.Uploads, subj string, offset int, data string, want schemas.Code) *schemas.UploadResponse {
	s.t.Helper()
	a, refused := u.Chunk(s.t.Context(), fmt.Sprintf("%s.%d", subj, offset), []byte(data))
	var got schemas.Code
	if refused != nil {
		got = refused.Code
	}
	if got != want {
		s.t.Fatalf("%d bytes at %d: got %v, want code %q", len(data), offset, refused, want)
	}
	return a
}

// No more is taken than was announced, and what is refused does not end the upload.
func TestUploadTakesWhatWasAnnounced(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		u := s.uploads()
		subj := s.begin(u, "content")
		s.chunk(u, subj, 0, "content, and more", schemas.CodeInvalid)
		s.chunk(u, subj, 0, "cont", "")
		s.chunk(u, subj, 4, "ent, and more", schemas.CodeInvalid)
		s.chunk(u, subj, 4, "", schemas.CodeInvalid)
		s.chunk(u, subj, 5, "nt", schemas.CodeConflict)
		a := s.chunk(u, subj, 4, "ent", "")
		if a.Ref == nil || a.Offset != 7 {
			t.Fatalf("got %+v, want a reference", a)
		}
		if got, _ := s.read(a.Ref.Object, 0); got == nil || string(got) != "content" {
			t.Errorf("got %q", got)
		}
	})
}

// An upload that has failed is over, and leaves neither chunks nor its place.
func TestUploadThatFailsIsOver(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		u := s.uploads()
		for range 100 { // more than may be under way at once
			subj := s.begin(u, "content")
			s.chunk(u, subj, 0, "con", "")
			s.chunk(u, subj, 3, "vert", schemas.CodeInvalid) // what came is not what was announced
			s.chunk(u, subj, 3, "tent", schemas.CodeNotFound)
		}
		if got := s.messages(); got != 0 {
			t.Errorf("got %d messages, want that nothing is left", got)
		}
	})
}

// A broker has a bound for uploads under way. Those that have ended, well or not, and those that were silent do not count.
func TestUploadsAtOnce(t *testing.T) {
	const most = 64
	virtually(t, func(t *testing.T, s *shelf) {
		u := s.uploads()
		full := func(after string) {
			t.Helper()
			if _, refused := beginOf(u, "content"); refused == nil || refused.Code != schemas.CodeUnavailable {
				t.Fatalf("%s: got %v, want that no other is taken", after, refused)
			}
		}
		subjects := make([]string, most)
		for i := range subjects {
			subjects[i] = s.begin(u, "content")
		}
		full("as many as may be")
		s.chunk(u, subjects[0], 0, "content", "")
		subjects[0] = s.begin(u, "content")
		full("one has ended")
		time.Sleep(20 * time.Second)
		s.chunk(u, subjects[1], 0, "con", "")
		time.Sleep(15 * time.Second)
		for range most - 1 {
			s.begin(u, "content")
		}
		full("all but one were silent")
		s.chunk(u, subjects[2], 0, "con", schemas.CodeNotFound)
		s.chunk(u, subjects[1], 3, "te", "")
		time.Sleep(31 * time.Second)
		s.chunk(u, subjects[1], 5, "nt", schemas.CodeNotFound)
		for range most {
			s.begin(u, "content")
		}
		full("all were silent")
	})
}

// Uploads that are closed have ended, and no other begins.
func TestUploadsAreClosed(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		u := s.uploads()
		subj := s.begin(u, "content")
		s.chunk(u, subj, 0, "con", "")
		u.Close()
		s.chunk(u, subj, 3, "tent", schemas.CodeNotFound)
		if _, refused := beginOf(u, "content"); refused == nil || refused.Code != schemas.CodeUnavailable {
			t.Errorf("got %v, want that none is taken", refused)
		}
		if got := s.messages(); got != 0 {
			t.Errorf("got %d messages, want that nothing is left", got)
		}
	})
}
