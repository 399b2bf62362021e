import { errorMessage, type Logger, type LoopOptions } from '@weir/runtime';

/** Once, and then only for whoever looks closely. */
export function logLoopFailure(log: Logger, message: string): LoopOptions['onError'] {
  return (error, { failures, retryInMs }) => {
    const fields = { reason: errorMessage(error), retryInMs };
    if (failures === 1) log.warn(fields, message);
    else log.debug(fields, message);
  };
}
