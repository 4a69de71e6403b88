package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// mount is Vault's answer when a store is validated, and enough of one to any write.
const mount = `{"data":{"path":"secret/","type":"kv","options":{"version":"2"}}}`

func readsSecret(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/data/")
}

// empty is a Vault with one secret in each folder, where nothing was pushed yet.
func empty(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pushed"):
		http.Error(w, `{"errors":[]}`, http.StatusNotFound)
	case r.URL.Query().Has("list"):
		_, _ = io.WriteString(w, `{"data":{"keys":["only"]}}`)
	case readsSecret(r):
		_, _ = io.WriteString(w, `{"data":{"data":{"username":"u","password":"p"},"metadata":{"version":1,"created_time":"2026-01-01T00:00:00Z"}}}`)
	default:
		_, _ = io.WriteString(w, mount)
	}
}

// changing is a Vault whose secrets have another value each time.
func changing() http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if !readsSecret(r) {
			empty(w, r)
			return
		}
		i := n.Add(1)
		_, _ = fmt.Fprintf(w, `{"data":{"data":{"username":"u","password":"p-%d"},"metadata":{"version":%d,"created_time":"2026-01-01T00:00:00Z"}}}`, i, i)
	}
}

// hang is a Vault that never answers reads.
func hang(w http.ResponseWriter, r *http.Request) {
	if !readsSecret(r) {
		empty(w, r)
		return
	}
	<-r.Context().Done()
}

// trickle is a Vault that takes 15 seconds for a secret of 1.25 MiB.
func trickle(w http.ResponseWriter, r *http.Request) {
	if !readsSecret(r) {
		empty(w, r)
		return
	}
	answer := []byte(`{"data":{"data":{"username":"u","password":"` + strings.Repeat("v", 1280<<10) + `"},"metadata":{"version":1,"created_time":"2026-01-01T00:00:00Z"}}}`)
	tick := time.NewTicker(750 * time.Millisecond)
	defer tick.Stop()
	for len(answer) > 0 {
		n := min(len(answer), 64<<10)
		if _, err := w.Write(answer[:n]); err != nil {
			return
		}
		answer = answer[n:]
		_ = http.NewResponseController(w).Flush()
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// operation returns the operation of a request to AWS.
func operation(r *http.Request) string {
	target := r.Header.Get("X-Amz-Target")
	return target[strings.LastIndex(target, ".")+1:]
}

// repeatedReceipt is an AWS whose messages are all different but for their receipt handle, and whose secrets hang.
func repeatedReceipt() http.HandlerFunc {
	var serial atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		switch operation(r) {
		case "ReceiveMessage":
			var messages []map[string]any
			for range 10 {
				n := serial.Add(1)
				messages = append(messages, map[string]any{
					"MessageId": fmt.Sprint("message-", n), "ReceiptHandle": "always-this", "Attributes": map[string]string{"SentTimestamp": fmt.Sprint(time.Now().UnixMilli())},
					"Body": fmt.Sprintf(`{"version":"0","id":"%d","source":"aws.secretsmanager","detail-type":"AWS API Call via CloudTrail","account":"111122223333","region":"eu-central-1","time":%q,"resources":[],"detail":{"eventSource":"secretsmanager.amazonaws.com","eventName":"PutSecretValue","awsRegion":"eu-central-1","requestParameters":{"secretId":"forged-%d"}}}`,
						n, time.Now().UTC().Format(time.RFC3339), n),
				})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"Messages": messages})
		case "GetQueueAttributes", "DeleteMessageBatch", "ChangeMessageVisibilityBatch":
			_, _ = io.WriteString(w, `{"Attributes":{},"Successful":[],"Failed":[]}`)
		default:
			<-r.Context().Done()
		}
	}
}

// endless is an AWS that has no messages but does not wait for any, and whose lists have always one more page.
func endless() http.HandlerFunc {
	var pages atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if !strings.HasPrefix(r.Header.Get("X-Amz-Target"), "secretsmanager.") {
			_, _ = io.WriteString(w, `{"Attributes":{}}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"SecretList":[],"SecretValues":[],"NextToken":"page-%d"}`, pages.Add(1))
	}
}
