package emulator

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// controlHandler serves the paths below /_control/, for tests in another process:
//
//	GET    /_control/calls            counts and log
//	POST   /_control/reset            clears calls and sessions
//	GET    /_control/sessions         the sessions that STS has issued
//	POST   /_control/sessions/expire  expires all sessions
//	POST   /_control/roles            adds the Role in the body
//	POST   /_control/credentials      adds the Credential in the body
//	POST   /_control/faults           injects the Fault in the body, returns its id
//	DELETE /_control/faults           removes all faults
//	DELETE /_control/faults/{id}      removes one
//	GET    /_control/secrets/{name}   the current value
//	PUT    /_control/secrets/{name}   makes the body the current value
//	DELETE /_control/secrets/{name}   deletes a secret without a recovery window
//
// Bodies have the field names of the Go types, except that durations are text such as "100ms", and that a fault
// selects calls with Operation and SecretID.
//
// It requires no signature: anyone who can reach the port can use it.
func (e *Emulator) controlHandler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern, path string, h http.HandlerFunc) {
		mux.HandleFunc(pattern+" "+controlPrefix+path, h)
	}
	handle("GET", "calls", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"counts": e.Counts(), "log": e.Calls()})
	})
	handle("POST", "reset", func(http.ResponseWriter, *http.Request) { e.Reset() })
	handle("GET", "sessions", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, e.Sessions()) })
	handle("POST", "sessions/expire", func(http.ResponseWriter, *http.Request) { e.ExpireSessions() })
	handle("POST", "roles", accept(func(_ http.ResponseWriter, r roleBody) { e.AddRole(r.role()) }))
	handle("POST", "credentials", accept(func(_ http.ResponseWriter, c Credential) { e.AddCredential(c) }))
	handle("POST", "faults", accept(func(w http.ResponseWriter, f faultBody) {
		writeJSON(w, map[string]string{"id": e.InjectID(f.fault())})
	}))
	handle("DELETE", "faults", func(http.ResponseWriter, *http.Request) { e.ClearFaults() })
	handle("DELETE", "faults/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !e.Remove(r.PathValue("id")) {
			http.Error(w, "no such fault", http.StatusNotFound)
		}
	})
	handle("GET", "secrets/{name...}", e.controlGet)
	handle("PUT", "secrets/{name...}", e.controlPut)
	handle("DELETE", "secrets/{name...}", func(_ http.ResponseWriter, r *http.Request) { e.Delete(r.PathValue("name")) })
	return mux
}

// faultBody is a Fault with durations as text.
type faultBody struct {
	Fault

	Latency    duration
	RetryAfter duration
}

func (b faultBody) fault() Fault {
	f := b.Fault
	f.Latency, f.RetryAfter = time.Duration(b.Latency), time.Duration(b.RetryAfter)
	return f
}

// roleBody is a Role with its duration as text.
type roleBody struct {
	Role

	MaxSessionDuration duration
}

func (b roleBody) role() Role {
	r := b.Role
	r.MaxSessionDuration = time.Duration(b.MaxSessionDuration)
	return r
}

type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = duration(parsed)
	return err
}

func (e *Emulator) controlGet(w http.ResponseWriter, r *http.Request) {
	value, ok := e.Get(r.PathValue("name"))
	if !ok {
		http.Error(w, "no such secret", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(value) // the client may have closed the connection
}

func (e *Emulator) controlPut(w http.ResponseWriter, r *http.Request) {
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "cannot read the value", http.StatusBadRequest)
		return
	}
	writeJSON(w, map[string]string{"versionId": e.Put(r.PathValue("name"), value)})
}

// accept turns a function that takes a JSON body into a handler. It rejects unknown fields, so that a misspelt
// fault does not match nothing unnoticed.
func accept[T any](do func(http.ResponseWriter, T)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in T
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			http.Error(w, "cannot decode the body: "+err.Error(), http.StatusBadRequest)
			return
		}
		do(w, in)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may have closed the connection
}
