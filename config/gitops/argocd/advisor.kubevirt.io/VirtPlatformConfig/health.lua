-- VirtPlatformConfig conforms to kstatus: status.observedGeneration and the conditions Ready, Reconciling and Stalled.
-- A sync with several waves goes on until this says Healthy or Degraded. So a plan that waits for a review under
-- DryRun, or for the time for which it is approved, is Healthy, and the message says what it waits for. Suspended means
-- that the spec asks for Apply and that a person has to look at the plan first.
local health = { status = "Progressing", message = "Waiting for the operator" }
if obj.status == nil then
  return health
end
local observed = obj.status.observedGeneration
if observed ~= nil and obj.metadata.generation ~= nil and observed ~= obj.metadata.generation then
  health.message = "Waiting for the operator to act on the newest spec"
  return health
end
for _, condition in ipairs(obj.status.conditions or {}) do
  if condition.type == "Ready" then
    health.message = condition.message
    if condition.status == "True" then
      health.status = "Healthy"
    end
  end
  if condition.type == "Stalled" and condition.status == "True" then
    health.message = condition.message
    health.status = "Degraded"
    if obj.status.phase == "ReviewRequired" then
      health.status = "Suspended"
    end
  end
end
return health
