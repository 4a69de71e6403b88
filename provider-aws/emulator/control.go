package emulator

import (
	"io"
	"net/http"
)

// controlPrefix is the start of the only path that is none of AWS: PUT /_control/secrets/{name} makes the body the current value. It
// requires no signature: anyone who can reach the port can use it.
const controlPrefix = "/_control/secrets/"

func (e *Emulator) control(w http.ResponseWriter, r *http.Request, name string) {
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil || r.Method != http.MethodPut {
		http.Error(w, "PUT a value", http.StatusBadRequest)
		return
	}
	e.Put(name, value)
}
