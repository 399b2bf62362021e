import { certificatesContract } from './certificates.ts';
import { connectionContract } from './connection.ts';
import { heartbeatsContract } from './heartbeats.ts';
import { leasesContract } from './leases.ts';
import { revisionsContract } from './revisions.ts';
import type { StoreUnderTest } from './store-fixture.ts';
import { suspensionAuditContract } from './suspension-audit.ts';
import { suspensionsContract } from './suspensions.ts';
import { tableContract } from './table.ts';
import { usageContract } from './usage.ts';
import { usageCountersContract } from './usage-counters.ts';
import { usageSeriesContract } from './usage-series.ts';

/** Checks a store against every statement of `contract.ts`. */
export function storeContract(subject: StoreUnderTest): void {
  connectionContract(subject);
  tableContract(subject);
  revisionsContract(subject);
  certificatesContract(subject);
  heartbeatsContract(subject);
  usageContract(subject);
  usageCountersContract(subject);
  usageSeriesContract(subject);
  suspensionsContract(subject);
  suspensionAuditContract(subject);
  leasesContract(subject);
}
