package azureconfig

import (
	"encoding/json"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// codes returns the code of an error of Key Vault and that of its cause, by
// https://learn.microsoft.com/azure/key-vault/general/rest-error-codes. Both are empty if the answer is not that of Key Vault.
func codes(err error) (code, inner string) {
	var r *azcore.ResponseError
	if !errors.As(err, &r) || r.RawResponse == nil {
		return "", ""
	}
	raw, err := runtime.Payload(r.RawResponse)
	if err != nil {
		return "", ""
	}
	var body struct {
		Error struct {
			Code  string `json:"code"`
			Inner struct {
				Code string `json:"code"`
			} `json:"innererror"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &body) != nil {
		return "", ""
	}
	return body.Error.Code, body.Error.Inner.Code
}
