package stack

// SharedDuties is the metric of the duties that modules share which serve all namespaces, for Process.Metric.
const SharedDuties = `directsecrets_shared_duties{lease="` + Namespace + `/shared-duties.direct-secrets.io"}`
