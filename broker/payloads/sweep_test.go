package payloads_test

import (
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
)

func (s *shelf) objects() (all []payloads.Object) {
	s.t.Helper()
	if err := s.Objects(s.t.Context(), func(o payloads.Object) error { all = append(all, o); return nil }); err != nil {
		s.t.Fatal(err)
	}
	return all
}

func (s *shelf) chunks() map[string]time.Time {
	s.t.Helper()
	all := map[string]time.Time{}
	if err := s.Chunks(s.t.Context(), func(id string, last time.Time) error { all[id] = last; return nil }); err != nil {
		s.t.Fatal(err)
	}
	return all
}

func TestObjectsGo(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		if len(s.objects())+len(s.chunks()) != 0 || s.made.Load() != 0 {
			t.Error("there is something before there is a store")
		}
		began := time.Now()
		s.put("a", make([]byte, 300<<10))
		time.Sleep(time.Hour)
		s.put("b", []byte("2"))
		all := s.objects()
		if len(all) != 2 || all[0].Name != "a" || all[0].Size != 300<<10 || all[1].Stored.Sub(began) < time.Hour || all[0].Stored.Sub(began) > time.Minute {
			t.Fatalf("got %+v", all)
		}
		if c := s.chunks(); len(c) != 2 || !c[all[1].ID].After(c[all[0].ID]) {
			t.Fatalf("got %v", c)
		}
		for range 2 { // to forget twice does no harm
			if err := s.Forget(t.Context(), all[0]); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := s.Read(t.Context(), "a", "", 0); !errors.Is(err, natsconn.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
		s.put("a", []byte("another one of that name"))
		if err := s.Forget(t.Context(), all[0]); err != nil {
			t.Fatal(err)
		}
		if err := s.Scrap(t.Context(), all[0].ID); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.read("a", 0); string(got) != "another one of that name" || len(s.chunks()) != 2 {
			t.Errorf("got %q and chunks %v", got, s.chunks())
		}
	})
}

func TestObjectsAreReadOrNothingIs(t *testing.T) {
	virtually(t, func(t *testing.T, s *shelf) {
		s.put("a", []byte("1"))
		if _, err := s.conn.PublishSync(t.Context(), ns.PayloadInfo("b"), nil, []byte("{")); err != nil {
			t.Fatal(err)
		}
		if err := s.Objects(t.Context(), func(payloads.Object) error { return nil }); err == nil {
			t.Error("what is stored of an object cannot be read, and nobody says so")
		}
	})
}
