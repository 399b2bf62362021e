// Tests a release on three real nodes, from its installation to its removal, as operators and tenants see it. Each part continues with the
// state that the previous part left.
import { after, before, describe } from 'node:test';
import { insideSandbox, requireProgram } from '@weir/tools';
import { type ChartFleet, startChartFleet } from '../../src/cluster/chart-fleet.ts';
import { faults } from './chart/faults.ts';
import { http } from './chart/http.ts';
import { installation } from './chart/installation.ts';
import { tenants } from './chart/tenants.ts';
import { uninstallation } from './chart/uninstallation.ts';
import { upgrades } from './chart/upgrades.ts';

const requirement = { ...requireProgram('redis', 'kubernetes', 'nodes', 'images', 'helm'), ...insideSandbox() };

describe('helm install weir', { ...requirement, timeout: 900_000 }, () => {
  let fleet: ChartFleet;
  before(async () => {
    fleet = await startChartFleet();
  });
  after(() => fleet?.close());

  for (const part of [installation, tenants, http, upgrades, faults, uninstallation]) part(() => fleet);
});
