-- What Leonardo's accounting database does, as far as the job scripts meet it.
function slurm_job_submit(job, partitions, uid)
    if job.account == nil then
        slurm.log_user("no account given")
        return slurm.ESLURM_INVALID_ACCOUNT
    end
    local qos = { boost_usr_prod = "boost_qos_dbg", accelerated = "short" }
    if job.partition ~= nil and qos[job.partition] ~= nil and job.qos ~= qos[job.partition] then
        slurm.log_user("partition %s has no QOS %s", job.partition, tostring(job.qos))
        return slurm.ESLURM_INVALID_QOS
    end
    return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
    return slurm.SUCCESS
end

return slurm.SUCCESS
