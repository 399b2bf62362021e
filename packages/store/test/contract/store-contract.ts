import { certificatesContract } from './certificates.ts';
import { connectionContract } from './connection.ts';
import { cutoffsContract } from './cutoffs.ts';
import { heartbeatsContract } from './heartbeats.ts';
import { revisionsContract } from './revisions.ts';
import type { Subject } from './subject.ts';
import { tableContract } from './table.ts';
import { usageContract } from './usage.ts';

/** Every sentence of `contract.ts`, held against one kind of store. */
export function storeContract(subject: Subject): void {
  connectionContract(subject);
  tableContract(subject);
  revisionsContract(subject);
  certificatesContract(subject);
  heartbeatsContract(subject);
  usageContract(subject);
  cutoffsContract(subject);
}
